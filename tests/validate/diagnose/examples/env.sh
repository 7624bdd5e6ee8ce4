export NCCL_DEBUG=WARN
export NCCL_ALGO=Tree
