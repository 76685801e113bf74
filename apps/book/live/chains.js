"use strict";

const blocks = 5, size = 4, count = blocks * size;
const colours = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)"];
let seed = 1, chosen = count - 1, result = null;

const weight = value => value.toFixed(3);
const gamma = () => Number(element("gamma").value);
// The weight of token j in term c of the output of token i.
const term = (c, i, j) => (1 - gamma()) * gamma() ** c * result.steps[c][i * count + j];

// The indices of a token, of the token to which it refers, and so on, down to a value.
function chainOf(token) {
  const chain = [token];
  while (result.refers[chain.at(-1)] !== chain.at(-1)) chain.push(result.refers[chain.at(-1)]);
  return chain;
}

const nameOf = token => token < size ? `${result.tokens[token]} (token ${token})` : `token ${token}`;

function drawChain() {
  const across = 92, down = 52, chain = chainOf(chosen);
  const x = token => 40 + Math.floor(token / size) * across, y = token => 24 + (token % size) * down;
  const svg = make("svg:svg", {viewBox: `0 0 ${blocks * across - 12} ${size * down - 4}`, role: "img",
                               "aria-label": "every token with its reference"});
  const arrow = (token, bold) => {
    const to = result.refers[token];
    if (to === token) return;
    svg.append(make("svg:line", {x1: x(token) - 38, y1: y(token), x2: x(to) + 38, y2: y(to), stroke: bold ? "var(--c1)" : "var(--rule)",
                                 "stroke-width": bold ? 3 : 1.5}));
  };
  for (let token = 0; token < count; ++token) arrow(token, false);
  for (const token of chain) arrow(token, true);
  for (let token = 0; token < count; ++token) {
    const share = result.output[chosen * count + token], bold = chain.includes(token);
    svg.append(make("svg:rect", {x: x(token) - 38, y: y(token) - 20, width: 76, height: 40, rx: 6, fill: "var(--ground)"}),
               make("svg:rect", {x: x(token) - 38, y: y(token) - 20, width: 76, height: 40, rx: 6,
                                 fill: `rgba(var(--hot), ${(0.85 * share).toFixed(3)})`, stroke: bold ? "var(--c1)" : "var(--rule)",
                                 "stroke-width": token === chosen ? 3 : bold ? 2 : 1}),
               make("svg:text", {x: x(token), y: y(token) - 3, "text-anchor": "middle", class: "number"},
                    token < size ? `${token}: ${result.tokens[token]}` : `${token} → ${result.refers[token]}`),
               make("svg:text", {x: x(token), y: y(token) + 13, "text-anchor": "middle", class: "derivative"}, share < 0.0005 ? "" : weight(share)));
  }
  element("chain").replaceChildren(svg);
  const value = chain.at(-1), share = result.output[chosen * count + value], references = chain.length - 1;
  element("arrives").replaceChildren(`${nameOf(chosen)} → ${chain.slice(1).map(nameOf).join(" → ") || "itself"}. `,
    make("strong", {}, `The value ${result.tokens[value]}`), `, ${references} reference${references === 1 ? "" : "s"} away, arrives with the weight `,
    make("strong", {}, weight(share)), ".");
}

function drawBars() {
  const width = 480, height = 150, left = 30, bottom = 34, top = 6, step = (width - left - 4) / count;
  const most = Math.max(0.1, ...Array.from({length: count}, (_, j) => result.output[chosen * count + j]));
  const tall = share => (height - top - bottom) * share / most;
  const svg = make("svg:svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "weights of all tokens in the output"});
  for (const share of [0, most / 2, most]) {
    const y = height - bottom - tall(share);
    svg.append(make("svg:line", {x1: left, x2: width - 4, y1: y, y2: y, stroke: "var(--rule)"}),
               make("svg:text", {x: left - 4, y: y + 4, "text-anchor": "end", class: "tick"}, share.toFixed(2)));
  }
  for (let token = 0; token < count; ++token) {
    let y = height - bottom;
    for (let c = 0; c < blocks; ++c) {
      const part = tall(term(c, chosen, token));
      y -= part;
      if (part > 0.05) svg.append(make("svg:rect", {x: left + step * token + 3, y, width: step - 6, height: part, fill: colours[c]}));
    }
    const value = token === chainOf(chosen).at(-1);
    svg.append(make("svg:text", {x: left + step * (token + 0.5), y: height - bottom + 13, "text-anchor": "middle", class: value ? "tick chosen" : "tick"}, String(token)));
    if (token < size) {
      svg.append(make("svg:text", {x: left + step * (token + 0.5), y: height - bottom + 26, "text-anchor": "middle", class: value ? "tick chosen" : "tick"},
                      result.tokens[token]));
    }
  }
  element("bars").replaceChildren(svg);
}

// A matrix as squares. The entry `full` has the full colour.
function heatMap(title, matrix, full) {
  const side = 10, svg = make("svg:svg", {viewBox: `-1 -1 ${count * side + 2} ${count * side + 2}`, role: "img", "aria-label": title});
  svg.append(make("svg:rect", {x: 0, y: 0, width: count * side, height: count * side, fill: "none", stroke: "var(--rule)"}));
  matrix.forEach((value, i) => {
    const share = Math.min(1, value / full);
    if (share < 0.01) return;
    svg.append(make("svg:rect", {x: i % count * side, y: Math.floor(i / count) * side, width: side, height: side,
                                 fill: `rgba(var(--hot), ${share.toFixed(2)})`}));
  });
  svg.append(make("svg:rect", {x: 0, y: chosen * side, width: count * side, height: side, fill: "none", stroke: "var(--c1)"}));
  return make("figure", {}, svg, make("figcaption", {}, title));
}

function drawMatrices() {
  const powers = ["P", "P⁻ P", "(P⁻)² P", "(P⁻)³ P", "(P⁻)⁴ P"];
  const maps = powers.map((power, c) => heatMap(`${power}, which has the factor ${weight((1 - gamma()) * gamma() ** c)}`, result.steps[c], 1));
  maps.push(heatMap("Y, the output of the operation chacal", result.output, Math.max(0.05, ...result.output)));
  element("powers").replaceChildren(...maps);
  element("same").textContent = `The sum of all ${count} terms and the output of the operation differ by at most ${result.difference.toExponential(1)}.`;
}

function draw(focused = false) {
  element("tokens").replaceChildren(tokenButtons(result.tokens.map((_, token) => String(token)), chosen, token => {
    chosen = token;
    draw(true);
  }));
  if (focused) element("tokens").querySelectorAll("button")[chosen].focus();
  drawChain();
  drawBars();
  drawMatrices();
}

let worker = null, busy = false, again = false;

const openWorker = () => unpackLonghand(longhandModule).then(bytes => new LonghandWorker(bytes));

// Computes the matrices for the current settings. Settings that change meanwhile are computed afterwards.
async function compute() {
  element("gamma-value").value = gamma().toFixed(2);
  element("score-value").value = element("score").value;
  again = busy;
  if (busy) return;
  busy = true;
  try {
    worker ??= openWorker();
    result = await (await worker).ask({do: "chains", blocks, size, seed, gamma: gamma(), score: Number(element("score").value)});
    draw();
  } catch (error) {
    element("failed").hidden = false;
    element("failed").textContent = error.message;
  }
  busy = false;
  if (again) compute();
}

const steps = 300, between = 20;
const models = [{name: "ChaCAL", heads: "chacal:1"}, {name: "Softmax", heads: "softmax:1"}];
const depths = Array.from({length: blocks}, (_, depth) => ({
  name: depth === 1 ? "1 reference" : depth + " references", colour: colours[depth], dash: ["", "6 3", "2 2", "9 3 2 3", "1 4"][depth]}));

// The config.ini of a training.
function configuration(model, math) {
  return `[task]\nname = chains\nblocks = ${blocks}\nsize = ${size}\nscore = depths\n
[model]\nwidth = 48\nlayers = 1\nheads = ${model.heads}\ngamma = ${gamma()}\npositions = learned\n
[training]\nsteps = ${steps}\nbatch = 32\nrate = 5e-3\nwarm_up = 20\n
[compute]\nmath = ${math}\n`;
}

function drawLearned() {
  element("learned").replaceChildren(...models.map(model => chart(model.title ?? model.name, steps, 0.2,
    depths.map((curve, depth) => ({...curve, points: model.scores.map(score => [score.step, score.shares[depth]])})))));
}

async function trainModel(model) {
  model.worker?.close();
  model.worker = await openWorker();
  model.scores = [];
  const {kernels} = await model.worker.ask({do: "kernels"});
  await model.worker.ask({do: "open", ini: configuration(model, mathOf(kernels))});
  for (let step = 0; step <= steps; step += between) {
    if (step > 0) await model.worker.ask({do: "train", last: step});
    const scores = await model.worker.ask({do: "evaluate", changes: "", samples: 50});
    model.scores.push({step, shares: depths.map((_, depth) => scores["depth " + depth])});
    drawLearned();
  }
}

async function train() {
  element("train").disabled = true;
  element("state").value = "training";
  models[0].title = `ChaCAL with γ = ${gamma().toFixed(2)}`;
  const begun = performance.now();
  try {
    await Promise.all(models.map(trainModel));
    element("state").value = `done in ${((performance.now() - begun) / 1000).toFixed(1)} s: ` +
      models.map(model => `${model.name} gives ${percent(model.scores.at(-1).shares.at(-1))} right answers after ${blocks - 1} references`).join(", ");
  } catch (error) {
    element("state").value = error.message;
  }
  element("train").disabled = false;
}

for (const model of models) model.scores = [];
for (const id of ["gamma", "score"]) element(id).addEventListener("input", compute);
element("shuffle").addEventListener("click", () => {
  ++seed;
  compute();
});
element("train").addEventListener("click", train);
element("legend").replaceChildren(...colours.map((colour, c) => make("span", {class: "key"},
  make("svg:svg", {viewBox: "0 0 32 8", width: 32, height: 8, "aria-hidden": "true"}, make("svg:rect", {width: 32, height: 8, fill: colour})),
  c === 1 ? "1 step" : c + " steps")));
element("depths").replaceChildren(...legendOf(depths));
drawLearned();
if (openPage()) compute();
