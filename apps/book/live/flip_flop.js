"use strict";

const instructions = 32, steps = 600, between = 25;
const kinds = [
  {name: "FAL", heads: "fal:1", positions: "none", colour: "var(--c0)", dash: ""},
  {name: "Stick-breaking", heads: "stick:4", positions: "none", colour: "var(--c1)", dash: "6 3"},
  {name: "Softmax", heads: "softmax:4", positions: "rotary", colour: "var(--c2)", dash: "2 2"},
  {name: "ChaCAL", heads: "chacal:4", positions: "rotary", colour: "var(--c3)", dash: "9 3 2 3"},
];
// Number of test samples for each length, so that each length has about the same number of tokens.
const lengths = [{times: 1, samples: 100}, {times: 2, samples: 50}, {times: 4, samples: 25}, {times: 8, samples: 13}];

// The config.ini of a training.
function configuration(kind, math) {
  return `[task]\nname = flip-flop\ninstructions = ${instructions}\n
[model]\nwidth = 32\nlayers = 2\nheads = ${kind.heads}\npositions = ${kind.positions}\n
[training]\nsteps = ${steps}\nbatch = 16\nrate = 3e-3\nwarm_up = 20\n
[compute]\nmath = ${math}\n`;
}

const title = length => length.times === 1 ? `${instructions} instructions, as in training`
                                           : `${instructions * length.times} instructions, ${length.times} times as long`;

function showScores() {
  element("charts").replaceChildren(...lengths.map((length, i) => chart(title(length), steps, 0.4,
    kinds.map(kind => ({...kind, points: kind.scores.map(score => [score.step, score.reads[i]])})))));
  const head = make("tr", {}, ...["heads", "step", "loss", ...lengths.map(length => length.times + " ×")]
    .map(text => make("th", {}, text)));
  const rows = kinds.map(kind => {
    const last = kind.scores.at(-1);
    const cells = [kind.name, kind.step, kind.loss === null ? "" : kind.loss.toFixed(4),
                   ...lengths.map((_, i) => last ? percent(last.reads[i]) : "")];
    return make("tr", {}, ...cells.map(text => make("td", {}, String(text))));
  });
  element("scores").replaceChildren(head, ...rows);
}

let query = null;  // index of the chosen token; null: the last one
const views = new Map();

function headRow(view, head, at) {
  return make("div", {class: "row"}, make("small", {}, `layer ${head.layer + 1}, head ${head.head + 1}`),
              shadedTokens(view.tokens, head, at));
}

function showHeads() {
  const first = views.get(kinds[0]);
  if (!first) return;
  const count = first.tokens.length, at = Math.min(query ?? count - 1, count - 1);
  const choose = tokenButtons(first.tokens, at, i => {
    query = i;
    showHeads();
    element("heads").querySelectorAll(".tokens button")[i].focus();
  });
  const blocks = kinds.filter(kind => views.has(kind)).map(kind => {
    const view = views.get(kind), [best] = view.predictions[Math.min(at, view.tokens.length - 1)];
    return make("section", {}, make("h3", {}, kind.name),
      make("p", {}, `After ${kind.step} steps it predicts `, make("strong", {}, best.label), ` with ${percent(best.probability)}.`),
      ...view.heads.map(head => headRow(view, head, Math.min(at, view.tokens.length - 1))));
  });
  element("heads").replaceChildren(choose, make("div", {id: "views"}, ...blocks));
}

async function look(kind) {
  const prompt = element("typed").value.replace(/\s/g, "");
  try {
    const view = await kind.worker.ask({do: "look", prompt, most: 1});
    if (prompt !== element("typed").value.replace(/\s/g, "")) return;  // a later text is on its way
    views.set(kind, view);
    element("refused").value = "";
  } catch (error) {
    element("refused").value = error.message;
  }
  showHeads();
}

let training = 0;  // number of the current training; a stopped one has another number

// Trains one kind to the end, or until another training begins or this one is stopped.
async function train(kind, number) {
  while (kind.step < steps && training === number) {
    const due = (Math.floor(kind.step / between) + 1) * between;
    const reports = await kind.worker.ask({do: "train", last: Math.min(due, kind.step + 5)});
    kind.step = reports.at(-1).step;
    kind.loss = reports.at(-1).loss;
    kind.losses.push(...reports.map(report => report.loss));
    if (kind.step % between === 0) await score(kind);
    showScores();
  }
}

async function score(kind) {
  const reads = [];
  for (const {times, samples} of lengths) {
    reads.push((await kind.worker.ask({do: "evaluate", changes: `instructions = ${instructions * times}`, samples})).reads);
  }
  kind.scores.push({step: kind.step, reads});
  kind.solved ??= reads.every(share => share === 1) ? (performance.now() - begun) / 1000 : null;
  await look(kind);
}

let bytes = null, begun = 0;

async function start() {
  const number = ++training;
  element("train").disabled = true;
  element("stop").disabled = false;
  element("state").value = "starting";
  begun = performance.now();
  try {
    bytes ??= await unpackLonghand(longhandModule);
    await Promise.all(kinds.map(async kind => {
      kind.worker?.close();
      Object.assign(kind, {worker: new LonghandWorker(bytes), step: 0, loss: null, losses: [], scores: [], solved: null});
      const {kernels} = await kind.worker.ask({do: "kernels"});
      kind.math = mathOf(kernels);
      await kind.worker.ask({do: "open", ini: configuration(kind, kind.math)});
    }));
    const timer = setInterval(() => {
      element("state").value = `${((performance.now() - begun) / 1000).toFixed(0)} s`;
    }, 500);
    await Promise.all(kinds.map(async kind => {
      await score(kind);
      await train(kind, number);
    }));
    clearInterval(timer);
    if (training !== number) return;
    const solved = kinds.filter(kind => kind.solved !== null)
      .map(kind => `${kind.name} answered every read at every length after ${kind.solved.toFixed(1)} s`);
    element("state").value = [`done in ${((performance.now() - begun) / 1000).toFixed(1)} s`, ...solved].join("; ");
  } catch (error) {
    element("state").value = error.message;
  }
  element("train").disabled = false;
  element("stop").disabled = true;
}

function stop() {
  ++training;
  element("train").disabled = false;
  element("stop").disabled = true;
  element("state").value = "stopped";
}

for (const kind of kinds) Object.assign(kind, {step: 0, loss: null, losses: [], scores: []});
openPage();
element("legend").replaceChildren(...legendOf(kinds));
showScores();
element("train").addEventListener("click", start);
element("stop").addEventListener("click", stop);
element("typed").addEventListener("input", () => {
  query = null;
  for (const kind of kinds) if (kind.worker) look(kind);
});
