#!/bin/sh
# Times training on four ranks of two hosts that are simulated on this machine:
#   scripts/ranks_over_network.sh [LONGHAND [WORDS...]]
# A host is a network namespace with two ranks. A veth pair connects the two namespaces. Open MPI uses
# only TCP, because it would treat both hosts as one with shared memory. The link is measured at full
# speed, then limited to 10 and 1 Gbit/s (tc tbf), then also delayed by 0.1 and 1 ms in each direction.
# Delays need the kernel's netem; without it, tests/bench/slow_link.cpp replaces the veth pair. It is
# compiled here with CXX (c++), as is link_probe.cpp, which measures the speed of TCP over each link. The
# output of both goes to standard error. The script prints one line for each link and each value of
# --shard: steps per second, bytes that rank 0 sends in a step, the time of the exchange of gradients, its
# part that did not overlap with the backward pass, and whether the parameters have the same bits as after
# training in one process. WORDS are further flags of `longhand train`. The script needs root permissions,
# iproute2, mpirun and a compiler.
set -eu
sources=$(realpath "$(dirname "$0")/../tests/bench")
longhand=$(realpath "${1:-build/release/apps/longhand}")
[ $# = 0 ] || shift
for need in ip tc mpirun; do
  command -v $need >/dev/null || {
    echo "ranks_over_network: skipped, needs root, iproute2 and mpirun: no $need here"
    exit 77
  }
done
[ "$(id -u)" = 0 ] || {
  echo "ranks_over_network: skipped, needs root, iproute2 and mpirun: not root"
  exit 77
}
a=longhand-a-$$ b=longhand-b-$$
folder=$(mktemp -d)
relay=""
# The relay prints its traffic when it ends.
stop_relay() {
  [ -z "$relay" ] || { kill "$relay"; wait "$relay" || true; }
  relay=""
}
clean() {
  stop_relay
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT
trap 'exit 1' INT TERM
cd "$folder"
{ ip netns add "$a" && ip netns add "$b"; } 2>errors || {
  echo "ranks_over_network: skipped, no network namespaces here: $(cat errors)"
  exit 77
}
device=longhand$$
# Assigns an address to the device of each host.
addresses() {
  host=0
  for space in "$a" "$b"; do
    host=$((host + 1))
    ip -n "$space" addr add 10.77.0.$host/24 dev $device
    ip -n "$space" link set lo up
    ip -n "$space" link set $device up
  done
}
ip link add $device netns "$a" type veth peer name $device netns "$b"
addresses

# mpirun calls this program in place of ssh, with HOST COMMAND..., to start processes on the other host.
cat >agent <<END
#!/bin/sh
shift
exec ip netns exec $b env TMPDIR=$folder/other sh -c "\$*"
END
mkdir other
chmod +x agent

# link RATE DELAY: limits both ends of the link to RATE Mbit/s (0: no limit) with a delay of DELAY
# microseconds. Fails if the kernel does not support it.
link() {
  for space in "$a" "$b"; do
    tc -n "$space" qdisc del dev $device root 2>/dev/null || true
    if [ "$2" != 0 ]; then
      tc -n "$space" qdisc add dev $device root handle 1: netem delay "$2us" rate "$1mbit" limit 100000 ||
        return 1
    elif [ "$1" != 0 ]; then
      tc -n "$space" qdisc add dev $device root tbf rate "$1mbit" burst 512kb latency 100ms || return 1
    fi
  done 2>errors
}
# relay RATE DELAY: the same as link, but replaces the connection of the hosts by slow_link.
relay() {
  stop_relay
  ip -n "$a" link del $device 2>/dev/null || true
  rm -f ready
  mkfifo ready
  ./slow_link "$a" "$b" $device "$1" "$2" >ready &
  relay=$!
  read -r _ <ready || return 1
  addresses
}

settings="--task flip-flop --width 256 --layers 4 --heads softmax:3,fal:1 --batch 32 --parts 8 --steps 14
  --task.instructions 32 --evaluate_samples 0 --threads 1 --quiet --seed 1"
# shellcheck disable=SC2086  # a list of words
"$longhand" train $settings "$@" --out one 2>errors || { cat errors >&2; exit 1; }

# median KEY FILE: prints the median of KEY over all steps except the first four.
median() {
  sed -n "5,\$s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$2" | sort -g |
    awk '{x[NR] = $1} END {print NR ? x[int((NR + 1) / 2)] : "?"}'
}
# same RUN: prints yes if every step's loss and gradient norm equal those of training in one process.
# The final parameters must be equal too if they are stored in one file.
same() {
  numbers='s/.*\("loss":[^,]*\).*\("gradient_norm":[^,]*\).*/\1 \2/p'
  sed -n "$numbers" one/metrics.jsonl >expected
  sed -n "$numbers" "$1/metrics.jsonl" | cmp -s - expected || { echo no; return; }
  [ -e "$1/checkpoints/step-14/model.safetensors" ] || { echo yes; return; }
  cmp -s "$1/checkpoints/step-14/model.safetensors" one/checkpoints/step-14/model.safetensors &&
    echo yes || echo no
}
# steps NAME SHARD WORDS...: trains on the four ranks and prints a line of the table. A line of
# metrics.jsonl contains "seconds" twice, first for the step and then for the exchange, so the second is
# renamed.
steps() {
  name=$1 shard=$2
  shift 2
  rm -rf run
  # shellcheck disable=SC2086
  ip netns exec "$a" timeout 300 mpirun --allow-run-as-root --host 10.77.0.1:2,10.77.0.2:2 -np 4 \
    --mca plm_rsh_agent "$folder/agent" --mca btl tcp,self --mca pml ob1 --bind-to none \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
    "$longhand" train $settings --shard "$shard" "$@" --out "$folder/run" >errors 2>&1 || {
    echo "$name, $shard: failed: $(grep . errors | head -n 1)" >&2
    return
  }
  sed 's/"exchange":{"seconds"/"exchange":{"within"/' run/metrics.jsonl >numbers
  printf '| %-28s | %-9s | %6.2f | %10.0f | %7.1f | %7.1f | %s |\n' "$name" "$shard" \
    "$(median seconds numbers | awk '{print 1 / $1}')" "$(median bytes numbers)" \
    "$(median within numbers | awk '{print 1000 * $1}')" \
    "$(median exposed numbers | awk '{print 1000 * $1}')" "$(same run)"
}

# table NAME WORDS...: prints all lines of the table for the link NAME.
table() {
  link_name=$1
  shift
  echo "$link_name: $(./link_probe "$a" "$b" 10.77.0.2)" >&2
  for shard in none optimizer gradients; do steps "$link_name" $shard "$@"; done
}

echo "| link                         | shared    | steps/s | bytes/step | exchange, ms | exposed, ms | bits of one |"
echo "|---|---|---|---|---|---|---|"
slow="link"
${CXX:-c++} -std=c++20 -O2 -o link_probe "$sources/link_probe.cpp"
link 1000 100 || {
  echo "ranks_over_network: this kernel has no netem ($(tr '\n' ' ' <errors)): delays by slow_link" >&2
  ${CXX:-c++} -std=c++20 -O2 -o slow_link "$sources/slow_link.cpp"
  slow=relay
}
for rate in 0 10000 1000; do
  link $rate 0 || {
    echo "ranks_over_network: no rate is simulated, this kernel has no tbf: $(tr '\n' ' ' <errors)" >&2
    continue
  }
  name="$((rate / 1000)) Gbit/s"
  [ $rate != 0 ] || name="as it is"
  table "$name" "$@"
done
if [ $slow = relay ]; then
  relay 0 0
  table "slow_link, as it is" "$@"
fi
for delay in 100 1000; do
  for rate in 10000 1000; do
    $slow $rate $delay || continue
    name="$((rate / 1000)) Gbit/s, 0.$((delay / 100)) ms"
    [ $delay != 1000 ] || name="$((rate / 1000)) Gbit/s, 1 ms"
    table "$name" "$@"
  done
done
