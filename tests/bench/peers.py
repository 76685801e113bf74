"""Functions for the scripts of this folder: timing, and starting the compared programs."""
import argparse
import json
import os
import subprocess
import sys
import time

MIB = 1 << 20


def memory(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def timed(body, device="cpu"):
    """Returns the seconds of a call. The device is idle before and after it."""
    def wait():
        if device == "cuda":
            import torch
            torch.cuda.synchronize()

    wait()
    start = time.perf_counter()
    body()
    wait()
    return time.perf_counter() - start


def timings(body, seconds, device="cpu", least=3):
    """Returns the seconds of each round. Runs a minimum of rounds until the time is over, without warm-up."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        times.append(timed(body, device))
    return times


def set_math(math):
    """Selects the precision of f32 products on a GPU: TF32 if fast. bf16 is selected by autocast."""
    import torch
    torch.set_float32_matmul_precision("high" if math == "fast" else "highest")


def rows_of(words):
    """Returns the rows of `longhand bench ... --json`."""
    out = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)["rows"]


def run(words):
    """Runs a command. Returns its last line of output as JSON, and its peak memory."""
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(words)}: exit status {status}")
    return json.loads(out.splitlines()[-1]), usage.ru_maxrss / 1024


def ceilings(start, math, options):
    """Returns the maximum operations and bytes per second, or nothing with --no-floor. `start` is the
    command that starts the program."""
    if options.no_floor:
        return None
    words = ["--threads", str(options.threads), "--seconds", "0.2", "--json", "--backend",
             options.device]
    on_cpu = options.device == "cpu"
    product = ["--size", "4096,1024,1024" if on_cpu else "8192,8192,8192", "--math", math]
    tokenwise = [] if on_cpu else ["--size", "131072,1024"]
    return (1e9 * max(row["best_gflops"] for row in
                      rows_of([*start, "bench", "gemm", *product, *words])),
            1e9 * max(row["gigabytes"] for row in
                      rows_of([*start, "bench", "tokenwise", *tokenwise, *words])))


def floor_ms(ceilings, row):
    """Returns the minimum time that a step's operations and bytes can take."""
    if ceilings is None:
        return None
    return 1e3 * max(row["operations"] / ceilings[0], row["bytes"] / ceilings[1])


def arguments(**defaults):
    """Returns a parser with the flags that all scripts have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", help="the rows are added to this file, a JSON line each")
    parser.add_argument("--under", default="", help="what each contender is started with")
    parser.add_argument("--no-floor", action="store_true", help="does not time the floor's kernels")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    for name, value in defaults.items():
        parser.add_argument("--" + name, type=type(value), default=value)
    return parser


def keep(options, row):
    if options.out:
        with open(options.out, "a") as out:
            print(json.dumps(row), file=out)


class Contenders:
    """Measures PyTorch's side in a script that is started with --serve.

    A contender is a form of PyTorch's model. On the CPU, each contender runs in a separate process, so
    that its peak memory can be measured. On a GPU, the device reports the memory and a process takes
    seconds to start, so contenders share a process until one of them ends it. The result of a contender
    that fails is {"failed": reason}; the others are not affected.
    """

    def __init__(self, script, options, under):
        self.words = [*under, sys.executable, script, options.program, "--serve", "--device",
                      options.device, "--threads", str(options.threads)]
        self.alone = options.device == "cpu"
        self.child = None

    def ask(self, *request):
        if self.child is None:
            self.child = subprocess.Popen(self.words, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, text=True)
        try:
            self.child.stdin.write(json.dumps(request) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else None
        if self.alone or answer is None:
            self.child.stdin.close()
            status = self.child.wait()
            self.child = None
            answer = answer or {"failed": f"exit status {status}"}
        if "failed" in answer:
            print(f"{str(request)[:80]}: {answer['failed']}", file=sys.stderr)
        return answer


def serve(contender, options):
    """Answers each request of the measuring script with contender(*request) as a line of JSON."""
    import torch

    out, sys.stdout = sys.stdout, sys.stderr  # standard output is reserved for answers
    torch.set_num_threads(options.threads)
    torch.set_default_device(options.device)
    for line in sys.stdin:
        request = json.loads(line)
        if options.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        try:
            torch.manual_seed(1)
            answer = contender(*request)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=out, flush=True)
        if options.device == "cuda":
            torch._dynamo.reset()
            torch.cuda.empty_cache()


def better(times):
    """Returns the minimum of the results that did not fail."""
    return min((t for t in times if t is not None), default=float("nan"))
