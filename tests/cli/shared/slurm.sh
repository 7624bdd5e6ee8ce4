# A Slurm of four nodes on this machine, in $work/slurm, on ports of its own and without accounts:
# start_slurm, lose_node n2, stop_slurm. Nothing outside of $work is touched. Those who source this
# have sourced patience.sh and python.sh.
: "${work:?a folder} ${python:?of python.sh}"
slurm_lacks() {
  for tool in slurmctld slurmd sbatch srun squeue scontrol; do
    command -v $tool >/dev/null 2>&1 || { echo "no $tool on PATH"; return; }
  done
  ls /usr/lib/*/slurm*/auth_none.so >/dev/null 2>&1 || { echo "Slurm without auth/none"; return; }
  slurmd -h 2>&1 | grep -q -e '-N node' || echo "slurmd without several on one machine"
}

# The first of six ports in a row that nobody has, of those that the kernel gives to nobody.
free_ports() {
  "$python" - <<'PY'
import random, socket
while True:
    first, held = random.randrange(16000, 32000, 8), []
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

# A port may be another's by the time it is asked for: then with other ports.
start_slurm() {
  for _ in 1 2 3; do
    try_slurm && return
    stop_slurm
  done
  return 1
}

try_slurm() {
  slurm=$work/slurm
  rm -rf "$slurm"
  mkdir -p "$slurm/state"
  ports=$(free_ports)
  host=$(hostname -s)
  {
    echo "ClusterName=stepcast
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$ports
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=120
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
SlurmdTimeout=600
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
  wait_until all_idle && ! ended "$slurm_controller" && return
  tail -n 3 "$slurm"/*.log
  return 1
}

all_idle() {
  ended "$slurm_controller" || [ "$(timeout 5 sinfo -h -t idle -o %D 2>/dev/null)" = 4 ]
}

# slurmd of a node, or of all, and what runs under it: those that have the node's log open, and
# their descendants.
processes_of() {
  for number in $(stats_of_processes | awk '/^[0-9]+ \((slurmd|slurmstepd)\)/ { print $1 }'); do
    [ -n "$(find "/proc/$number/fd" -lname "$slurm/slurmd-$1.log" 2>/dev/null)" ] || continue
    echo "$number"
    family_of "$number"
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
  kill -KILL "$slurm_controller" $(family_of "$slurm_controller") $(processes_of 'n[1-4]') \
    2>/dev/null || true
  slurm_controller=
}
