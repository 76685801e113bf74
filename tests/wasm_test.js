"use strict";
// node wasm_test.js MODULES RUNS TEXT: repeats each run of the folder RUNS with the modules of the folder
// MODULES. The losses of all steps and the last scores must be equal. TEXT contains what the native
// program wrote with the book's model of text. The module must write the same with the same probabilities.
const fs = require("fs"), path = require("path"), {performance} = require("perf_hooks");
const {openLonghand} = require("../apps/wasm/longhand.js");

const [modules, runs, text] = process.argv.slice(2);
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

function write(ask) {
  const folder = path.join(__dirname, "../apps/book/live/writer"), [step] = fs.readdirSync(path.join(folder, "checkpoints"));
  const [, model] = fs.readFileSync(path.join(folder, "config.ini"), "utf8").match(/\[model\]\n([^[]*)/);
  const parameters = fs.readFileSync(path.join(folder, "checkpoints", step, "model.safetensors"));
  ask({do: "open", ini: `[task]\nname = typed\n[model]\n${model}`}, parameters);
  let {prompt, tokens, log_probabilities} = JSON.parse(fs.readFileSync(text, "utf8"));
  tokens.forEach((token, i) => {
    const [best] = ask({do: "look", prompt, most: 1}).predictions.at(-1), share = Math.exp(log_probabilities[i]);
    expect(best.token === token && Math.abs(best.probability - share) < 2e-5, `after "${prompt}": ${JSON.stringify(best)}, expected ${token} with ${share}`);
    prompt += String.fromCharCode(token);
  });
  parameters[parameters.length - 1] ^= 1;
  refuses((request) => ask(request, parameters), {do: "open", ini: `[task]\nname = typed\n[model]\n${model}`}, "checksum");
}

// The weight of the value in the output of a token three references away is (1 - g^2) g^2.
function followChains(ask) {
  const count = 20, gamma = 0.6, {refers, output, difference} = ask({do: "chains", blocks: 5, size: 4, seed: 3, gamma, score: 40});
  let token = 12;
  while (refers[token] !== token) token = refers[token];
  const weight = output[12 * count + token];
  expect(Math.abs(weight - (1 - gamma ** 2) * gamma ** 2) < 1e-9, `chains: the value has the weight ${weight}`);
  expect(difference < 1e-12, `chains: the sum of the terms differs by ${difference}`);
  refuses(ask, {do: "chains", blocks: 5, size: 4, seed: 3, gamma: 1.5, score: 1}, "gamma: expected a number from 0 to 1");
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
  write(fused);
  followChains(fused);
  refuses(fused, {do: "open", ini: "[task]\nname = flip-flop\nwidth = 3\n"}, "task.width");
  refuses(fused, {do: "open", ini: "[task]\nname = flip-flop\n[compute]\nmath = bf16\n"}, "no kernels for bf16");
  refuses(fused, {do: "derivative", expression: "x*", typed: "1", by: "x", from: 0, to: 1}, "at character 3");
  refuses(fused, {do: "dance"}, "dance");
  refuses(plain, {do: "open", ini: "[task]\nname = flip-flop\n[compute]\nmath = portable\n"}, "relaxed SIMD");
  for (const [module, ask] of [["longhand.wasm", fused], ["longhand_plain.wasm", plain]]) {
    const times = 3;  // the fastest of several short groups, because other programs may run
    let rate = 0;
    for (let group = 0; group < 40; ++group) {
      const start = performance.now();
      ask({do: "multiply", size: 256, times});
      rate = Math.max(rate, times * 2 * 256 ** 3 / (performance.now() - start) / 1e6);
    }
    console.log(`wasm: ${module}: ${rate.toFixed(2)} GFLOP/s for products of 256 x 256 matrices`);
  }
  if (wrong > 0) process.exit(1);
}

main();
