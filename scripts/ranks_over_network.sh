#!/bin/sh
# scripts/ranks_over_network.sh [LONGHAND [WORDS...]]
# Four ranks on two hosts that this machine plays: two network namespaces joined by a veth pair, two
# ranks in each, Open MPI over TCP alone (its shared memory would take both hosts for one). The link is as it is, then slowed to 10 and 1 Gbit/s (tc tbf) and,
# where the kernel has netem, delayed by 0.1 and 1 ms each way. For each link, and each thing that
# ranks may share, a line: steps a second, bytes that rank 0 sends in a step, the time in which gradients
# were exchanged and how much of it backward did not hide, and whether the parameters have the bits of
# one process. WORDS are more flags of `longhand train`. Needs root, iproute2 and mpirun.
set -eu
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
clean() {
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT
trap 'exit 1' INT TERM
cd "$folder"
ip netns add "$a" 2>errors && ip netns add "$b" 2>errors || {
  echo "ranks_over_network: skipped, no network namespaces here: $(cat errors)"
  exit 77
}
ip link add "lha$$" netns "$a" type veth peer name "lhb$$" netns "$b"
ip -n "$a" addr add 10.77.0.1/24 dev "lha$$"
ip -n "$b" addr add 10.77.0.2/24 dev "lhb$$"
for end in "$a lha$$" "$b lhb$$"; do
  # shellcheck disable=SC2086
  set -- $end "$@"
  ip -n "$1" link set lo up
  ip -n "$1" link set "$2" up
  shift 2
done

# mpirun reaches the other host by this in place of ssh: HOST COMMAND...
cat >agent <<END
#!/bin/sh
shift
exec ip netns exec $b env TMPDIR=$folder/other sh -c "\$*"
END
mkdir other
chmod +x agent

# link RATE DELAY: both ends. Fails where the kernel cannot.
link() {
  for end in "$a lha$$" "$b lhb$$"; do
    space=${end% *} device=${end#* }
    tc -n "$space" qdisc del dev "$device" root 2>/dev/null || true
    if [ "$2" != 0 ]; then
      tc -n "$space" qdisc add dev "$device" root handle 1: netem delay "$2" rate "$1" limit 100000 ||
        return 1
    elif [ "$1" != unlimited ]; then
      tc -n "$space" qdisc add dev "$device" root tbf rate "$1" burst 512kb latency 100ms || return 1
    fi
  done 2>errors
}

settings="--task flip-flop --width 256 --layers 4 --heads softmax:3,fal:1 --batch 32 --parts 8 --steps 14
  --task.instructions 32 --evaluate_samples 0 --threads 1 --quiet --seed 1"
# shellcheck disable=SC2086  # a list of words
"$longhand" train $settings "$@" --out one 2>errors || { cat errors >&2; exit 1; }

# median KEY FILE: of all steps but the first four
median() {
  sed -n "5,\$s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$2" | sort -g |
    awk '{x[NR] = $1} END {print NR ? x[int((NR + 1) / 2)] : "?"}'
}
# same RUN: whether every step's loss and gradient norm are those of one process, and the parameters
# after the last where they lie in one file
same() {
  numbers='s/.*\("loss":[^,]*\).*\("gradient_norm":[^,]*\).*/\1 \2/p'
  sed -n "$numbers" one/metrics.jsonl >expected
  sed -n "$numbers" "$1/metrics.jsonl" | cmp -s - expected || { echo no; return; }
  [ -e "$1/checkpoints/step-14/model.safetensors" ] || { echo yes; return; }
  cmp -s "$1/checkpoints/step-14/model.safetensors" one/checkpoints/step-14/model.safetensors &&
    echo yes || echo no
}
# rank 0's line of metrics has its own seconds first, then those of the exchange.
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
  printf '| %-22s | %-9s | %6.2f | %10.0f | %7.1f | %7.1f | %s |\n' "$name" "$shard" \
    "$(median seconds numbers | awk '{print 1 / $1}')" "$(median bytes numbers)" \
    "$(median within numbers | awk '{print 1000 * $1}')" \
    "$(median exposed numbers | awk '{print 1000 * $1}')" "$(same run)"
}

echo "| link                   | shared    | steps/s | bytes/step | exchange, ms | exposed, ms | bits of one |"
echo "|---|---|---|---|---|---|---|"
delays="0.1ms 1ms"
link 1gbit 0.1ms || {
  echo "ranks_over_network: no delay is simulated, this kernel has no netem: $(tr '\n' ' ' <errors)" >&2
  delays=""
}
for rate in unlimited 10gbit 1gbit; do
  link $rate 0 || {
    echo "ranks_over_network: no rate is simulated, this kernel has no tbf: $(tr '\n' ' ' <errors)" >&2
    continue
  }
  for shard in none optimizer gradients; do steps "$rate" $shard "$@"; done
done
for delay in $delays; do
  for rate in 10gbit 1gbit; do
    link $rate $delay || continue
    for shard in none gradients; do steps "$rate, $delay" $shard "$@"; done
  done
done
