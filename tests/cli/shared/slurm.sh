# A Slurm of four nodes on this machine, in $work/slurm, on ports of its own and without accounts:
# start_slurm, lose_node n2, stop_slurm. Nothing outside of $work is touched.
: "${work:?a folder}"
slurm_lacks() {
  for tool in slurmctld slurmd sbatch srun squeue scontrol; do
    command -v $tool >/dev/null 2>&1 || { echo "no $tool on PATH"; return; }
  done
  ls /usr/lib/*/slurm*/auth_none.so >/dev/null 2>&1 || { echo "Slurm without auth/none"; return; }
  slurmd -h 2>&1 | grep -q -e '-N node' || echo "slurmd without several on one machine"
}

# The first of six ports in a row that nobody has.
free_ports() {
  /usr/bin/python3 - <<'PY'
import random, socket
while True:
    first, held = random.randrange(20000, 60000, 8), []
    try:
        for port in range(first, first + 6):
            held.append(socket.socket())
            held[-1].bind(("127.0.0.1", port))
        print(first)
        break
    except OSError:
        continue
PY
}

start_slurm() {
  slurm=$work/slurm
  mkdir -p "$slurm/state"
  ports=$(free_ports)
  host=$(hostname -s)
  {
    echo "ClusterName=stepcast
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$ports
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=1
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool-%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd-%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=1
SlurmdTimeout=4
ReturnToService=2
KillWait=2"
    for i in 1 2 3 4; do
      echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((ports + i)) CPUs=1"
    done
    echo "PartitionName=all Nodes=n[1-4] Default=YES State=UP"
  } >"$slurm/slurm.conf"
  export SLURM_CONF="$slurm/slurm.conf"
  slurmctld -D >"$slurm/slurmctld.out" 2>&1 &
  slurm_controller=$!
  for i in 1 2 3 4; do
    slurmd -D -N n$i >"$slurm/slurmd-n$i.out" 2>&1 &
  done
  for _ in $(seq 300); do
    [ "$(timeout 5 sinfo -h -t idle -o %D 2>/dev/null)" = 4 ] && return 0
    sleep 0.1
  done
  tail -n 3 "$slurm"/*.log
  return 1
}

# slurmd of a node, or of all, and what runs under it: those that have the node's log open, and
# their descendants.
processes_of() {
  for number in $(pgrep -x 'slurmd|slurmstepd'); do
    [ -n "$(find "/proc/$number/fd" -lname "$slurm/slurmd-$1.log" 2>/dev/null)" ] || continue
    echo "$number"
    children_of "$number"
  done
}

children_of() {
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    echo "$child"
    children_of "$child"
  done
}

# The node and all that runs there ends at once, as by a lost power supply.
lose_node() {
  # shellcheck disable=SC2046 # numbers
  kill -KILL $(processes_of "$1") 2>/dev/null || true
}

stop_slurm() {
  [ -n "${slurm_controller:-}" ] || return 0
  # shellcheck disable=SC2046 # numbers
  kill -KILL "$slurm_controller" $(children_of "$slurm_controller") $(processes_of 'n[1-4]') \
    2>/dev/null || true
  slurm_controller=
}
