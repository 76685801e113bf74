"use strict";

const inputs = [["x", 2], ["w", 0.5], ["z", -1], ["v", 0.8], ["t", 1]].map(([name, value]) => ({name, value}));
const steps = [
  {name: "p", op: "multiply", of: ["w", "x"]}, {name: "q", op: "multiply", of: ["v", "z"]}, {name: "s", op: "add", of: ["p", "q"]},
  {name: "y", op: "tanh", of: ["s"]}, {name: "e", op: "subtract", of: ["y", "t"]}, {name: "L", op: "square", of: ["e"]},
];
// Middle of every number in the drawing.
const places = {x: [50, 40], w: [50, 110], z: [50, 180], v: [50, 250], t: [390, 250], p: [170, 75], q: [170, 215], s: [280, 145],
                y: [390, 145], e: [500, 195], L: [600, 195]};
const forms = {
  multiply: (a, b) => `${a} ${b}`, add: (a, b) => `${a} + ${b}`, subtract: (a, b) => `${a} − ${b}`, tanh: a => `tanh ${a}`,
  square: a => `${a}²`,
};
const digits = value => (Object.is(value, -0) ? 0 : value).toFixed(4).replace("-", "−");

// The rule by which a record computes the derivatives of its operands, as pairs of a formula and the
// same formula with numbers.
function rules(step, value, derivative) {
  const y = step.name, [a, b] = step.of, dy = digits(derivative[y]), is = name => `d${name} = `, got = name => ` = ${digits(derivative[name])}`;
  switch (step.op) {
    case "multiply":
      return [is(a) + `d${y} · ${b} = ${dy} · ${digits(value[b])}` + got(a), is(b) + `d${y} · ${a} = ${dy} · ${digits(value[a])}` + got(b)];
    case "add": return [is(a) + `d${y}` + got(a), is(b) + `d${y}` + got(b)];
    case "subtract": return [is(a) + `d${y}` + got(a), is(b) + `−d${y}` + got(b)];
    case "tanh": return [is(a) + `d${y} · (1 − ${y}²) = ${dy} · (1 − ${digits(value[y])}²)` + got(a)];
    case "square": return [is(a) + `d${y} · ${a} + d${y} · ${a} = 2 · ${dy} · ${digits(value[a])}` + got(a) + ": the record reads e twice, and the parts are added"];
  }
}

let result = null, done = 0;  // done: number of records that backward has walked

function draw() {
  if (!result) return;
  const {values, walk} = result, derivative = Object.fromEntries(result.numbers.map(one => [one.name, one.derivative]));
  const walked = walk.slice(0, done).map(({name}) => steps.find(step => step.name === name));
  const current = walked.at(-1);
  const known = new Set(done > 0 ? ["L", ...walked.flatMap(step => step.of)] : []);
  const svg = make("svg:svg", {viewBox: "0 0 660 290", role: "img", "aria-label": "graph of the neuron's numbers"});
  for (const step of steps) {
    for (const from of step.of) {
      const [x1, y1] = places[from], [x2, y2] = places[step.name];
      svg.append(make("svg:line", {x1, y1, x2, y2, stroke: step === current ? "var(--c1)" : "var(--rule)", "stroke-width": step === current ? 3 : 1.5}));
    }
  }
  for (const [name, [x, y]] of Object.entries(places)) {
    const at = current && (current.name === name || current.of.includes(name));
    svg.append(make("svg:rect", {x: x - 46, y: y - 24, width: 92, height: 48, rx: 6, fill: "var(--panel)",
                                 stroke: at ? "var(--c1)" : "var(--rule)", "stroke-width": at ? 2 : 1}),
               make("svg:text", {x, y: y - 4, "text-anchor": "middle", class: "number"}, `${name} = ${digits(values[name])}`),
               make("svg:text", {x, y: y + 15, "text-anchor": "middle", class: "derivative"}, known.has(name) ? `d${name} = ${digits(derivative[name])}` : ""));
  }
  const graph = element("graph");
  graph.replaceChildren(svg);
  // On a narrow screen, the graph scrolls to the current record.
  graph.scrollLeft = (current ? places[current.name][0] : 0) / 660 * graph.scrollWidth - graph.clientWidth / 2;
  element("rule").replaceChildren(...(current
    ? [make("strong", {}, `${current.name} = ${forms[current.op](...current.of)}`), ": ", rules(current, values, derivative).join("; ")]
    : ["Forward is done: every number has its value. Backward begins with dL = 1."]));
  element("records").replaceChildren(...[...steps].reverse().map(step => make("li", step === current ? {class: "current"} : {},
    `${step.name} = ${forms[step.op](...step.of)}`, walked.includes(step) ? " ✓" : "")));
  element("state").value = `${done} of ${walk.length} records`;
  element("back").disabled = done === 0;
  element("next").disabled = element("all").disabled = done === walk.length;
  const head = element("numbers").rows[0];
  const rows = result.numbers.map(({name, derivative: d, quotient}) => {
    const step = steps.find(one => one.name === name);
    const cells = [make("i", {}, name), step ? forms[step.op](...step.of) : "input", values[name].toFixed(6), d.toFixed(6), quotient.toFixed(6)];
    return make("tr", {}, ...cells.map(cell => make("td", {}, cell)));
  });
  element("numbers").replaceChildren(head, ...rows);
}

let worker = null, asked = 0;

async function compute() {
  const number = ++asked;
  try {
    worker ??= unpackLonghand(longhandModule).then(bytes => new LonghandWorker(bytes));
    const answer = await (await worker).ask({do: "graph", inputs, steps});
    if (number !== asked) return;
    result = answer;
    draw();
  } catch (error) {
    element("state").value = error.message;
  }
}

for (const input of inputs) {
  const field = make("input", {type: "range", min: -3, max: 3, step: 0.05, value: input.value, id: "of-" + input.name});
  const said = make("output", {}, input.value.toFixed(2));
  field.addEventListener("input", () => {
    input.value = Number(field.value);
    said.value = input.value.toFixed(2);
    compute();
  });
  element("inputs").append(make("label", {class: "key"}, make("i", {}, input.name), field, said));
}
for (const [id, change] of [["back", () => done - 1], ["next", () => done + 1], ["all", () => steps.length]]) {
  element(id).addEventListener("click", () => {
    done = change();
    draw();
  });
}
if (openPage()) compute();
