"""A timeline of stepcast as the PyTorch profiler would have written it: a file per rank, four steps,
kernels under the names that PyTorch's libraries give them, waiting inside the collectives' kernels.

    as_kineto.py TIMELINE.json FOLDER
"""

import json
import sys

NAMES = {
    "gemm": "nvjet_hsh_192x192_64x4_2x1_v_bz_TNT",
    "attention_forward": "void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(Flash_fwd_params)",
    "attention_backward": "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel(Flash_bwd_params)",
    "norm": "void at::native::vectorized_layer_norm_kernel<float>(int)",
    "norm_backward": "void at::native::layer_norm_grad_input_kernel<float>(int)",
    "reduction": "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)",
    "softmax": "void at::native::cunn_SoftMaxForward<4, float>(float*)",
    "embedding": "void at::native::indexSelectLargeIndex<float>(int)",
    "copy": "void at::native::CatArrayBatchedCopy<float>(float*)",
    "optimizer": "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>(int)",
}
COLLECTIVES = {
    "all_reduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "all_gather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "reduce_scatter": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage)",
}
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, float>(int, float)"


def event(category, name, begin, duration, arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": round(begin, 3),
            "dur": round(duration, 3), "args": arguments}


def main(timeline, folder):
    with open(timeline, encoding="utf-8") as file:
        told = json.load(file)
    step = next(iter(told["otherData"]["step_us"].values()))
    ranks = sorted({e["pid"] for e in told["traceEvents"] if e["ph"] == "X"})
    for rank in ranks:
        events = []
        for number in range(4):
            at = number * step
            events.append(event("gpu_user_annotation", f"ProfilerStep#{number}", at, step, {}))
            for e in told["traceEvents"]:
                if e["ph"] != "X" or e["pid"] != rank:
                    continue
                arguments = {"device": 0, "stream": e["tid"]}
                name = NAMES.get(e["args"].get("family"), POINTWISE)
                if "group" in e["args"]:
                    name = COLLECTIVES[e["cat"]]
                    arguments |= {"Process Group Name": e["args"]["group"],
                                  "Process Group Ranks": str(ranks), "Group size": len(ranks),
                                  "In msg nelems": e["args"]["bytes"], "dtype": "Byte"}
                events.append(event("kernel", name, at + e["ts"], e["dur"], arguments))
        with open(f"{folder}/rank{rank}.json", "w", encoding="utf-8") as file:
            json.dump({"deviceProperties": [{"name": "NVIDIA H100 80GB HBM3", "x": float("nan")}],
                       "distributedInfo": {"rank": rank, "world_size": len(ranks)},
                       "traceEvents": events}, file)


main(*sys.argv[1:])
