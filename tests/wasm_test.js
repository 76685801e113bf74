"use strict";
// node wasm_test.js MODULES RUNS: repeats each run of the folder RUNS with the modules of the folder
// MODULES. The losses of all steps and the last scores must be equal.
const fs = require("fs"), path = require("path"), {performance} = require("perf_hooks");
const {openLonghand} = require("../apps/wasm/longhand.js");

const [modules, runs] = process.argv.slice(2);
let wrong = 0;
function expect(holds, what) {
  if (holds) return;
  ++wrong;
  console.error("wasm: " + what);
}

function repeat(name, ask, module) {
  const steps = 200;
  const folder = path.join(runs, name);
  ask({do: "open", ini: fs.readFileSync(path.join(folder, "config.ini"), "utf8")});
  const lines = fs.readFileSync(path.join(folder, "metrics.jsonl"), "utf8").trim().split("\n").map(line => JSON.parse(line));
  const expected = lines.filter(line => "loss" in line).slice(0, steps);
  const start = performance.now(), got = ask({do: "train", last: steps}), took = (performance.now() - start) / steps;
  expect(expected.length === steps && got.length === steps, `${name}: expected ${steps} steps, got ${got.length}`);
  const differs = expected.findIndex((line, i) => line.loss !== got[i].loss || line.accuracy !== got[i].accuracy);
  expect(differs < 0, `${module}, ${name}: step ${differs + 1}: expected loss ${expected[differs]?.loss}, got ${got[differs]?.loss}`);
  console.log(`wasm: ${module}, ${name}: ${differs < 0 ? steps : differs} steps have the program's bits, ${took.toFixed(1)} ms/step`);
  const scores = lines.filter(line => "train/reads" in line).at(-1)["train/reads"];
  const {reads} = ask({do: "evaluate", changes: "", samples: 20});
  expect(reads === scores, `${name}: expected reads ${scores}, got ${reads}`);
}

function refuses(ask, request, part) {
  let message = "";
  try {
    ask(request);
  } catch (error) {
    message = error.message;
  }
  expect(message.includes(part), `${JSON.stringify(request)}: expected an error with "${part}", got "${message}"`);
}

async function main() {
  const names = fs.readdirSync(runs).sort();
  const fused = await openLonghand(fs.readFileSync(path.join(modules, "longhand.wasm")));
  const plain = await openLonghand(fs.readFileSync(path.join(modules, "longhand_plain.wasm")));
  console.log(`wasm: kernels ${fused({do: "kernels"}).kernels} and ${plain({do: "kernels"}).kernels}`);
  for (const name of names) repeat(name, name === "plain" ? plain : fused, name === "plain" ? "longhand_plain.wasm" : "longhand.wasm");

  fused({do: "open", ini: fs.readFileSync(path.join(runs, "fal", "config.ini"), "utf8")});
  const view = fused({do: "look", prompt: "w1i0r", most: 2});
  expect(view.tokens.join("") === "w1i0r" && view.heads.length === 2 && view.heads[0].selected.length === 5 && view.predictions[4].length === 2, "look: " + JSON.stringify(view));
  expect(fused({do: "derivative", expression: "x*sin(x)", typed: "sin(x) + x*cos(x)", by: "x", from: -3, to: 3}).right, "a right derivative is wrong");
  const check = fused({do: "derivative", expression: "x^2", typed: "-2*x", by: "x", from: -3, to: 3});
  expect(!check.right && check.hint.includes("negative"), "a wrong derivative: " + JSON.stringify(check));
  refuses(fused, {do: "open", ini: "[task]\nname = flip-flop\nwidth = 3\n"}, "task.width");
  refuses(fused, {do: "derivative", expression: "x*", typed: "1", by: "x", from: 0, to: 1}, "at character 3");
  refuses(fused, {do: "dance"}, "dance");
  refuses(plain, {do: "open", ini: "[task]\nname = flip-flop\n[compute]\nmath = portable\n"}, "relaxed SIMD");
  for (const [module, ask] of [["longhand.wasm", fused], ["longhand_plain.wasm", plain]]) {
    const times = 50;
    ask({do: "multiply", size: 256, times});
    const start = performance.now();
    ask({do: "multiply", size: 256, times});
    const rate = times * 2 * 256 ** 3 / (performance.now() - start) / 1e6;
    console.log(`wasm: ${module}: ${rate.toFixed(2)} GFLOP/s for products of 256 x 256 matrices`);
  }
  if (wrong > 0) process.exit(1);
}

main();
