"use strict";

// Functions of all pages that compute.
const element = id => document.getElementById(id);

// Makes an element of HTML, or of SVG if the name begins with "svg:".
function make(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Shows the part of the page that needs the module. Returns false, and says how to build the module, if
// the book was written without it.
function openPage() {
  element("live").hidden = false;
  const there = "module" in document.body.dataset;
  if (!there) {
    element("missing").hidden = false;
    for (const control of element("live").querySelectorAll("button, input, select, textarea")) control.disabled = true;
  }
  return there;
}

// A chart of shares over training steps, as a figure. Each curve has a colour, a dash pattern and points
// [step, share]. The axis begins at the share `low`.
function chart(title, steps, low, curves) {
  const width = 300, height = 170, left = 34, bottom = 22, top = 8, right = 6;
  const x = step => left + (width - left - right) * step / steps;
  const y = share => top + (height - top - bottom) * (1 - (Math.max(share, low) - low) / (1 - low));
  const svg = make("svg:svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title});
  for (const share of [0.2, 0.4, 0.6, 0.8, 1].filter(share => share >= low)) {
    svg.append(make("svg:line", {x1: left, x2: width - right, y1: y(share), y2: y(share), stroke: "var(--rule)"}),
               make("svg:text", {x: left - 4, y: y(share) + 4, "text-anchor": "end", class: "tick"}, 100 * share + " %"));
  }
  for (const step of [0, steps / 3, 2 * steps / 3, steps]) {
    svg.append(make("svg:text", {x: x(step), y: height - 6, "text-anchor": step === steps ? "end" : "middle", class: "tick"},
                    String(step)));
  }
  for (const {points, colour, dash} of curves) {
    svg.append(make("svg:polyline", {points: points.map(([step, share]) => `${x(step)},${y(share)}`).join(" "), fill: "none",
                                     stroke: colour, "stroke-width": 2, "stroke-dasharray": dash}));
  }
  return make("figure", {}, svg, make("figcaption", {}, title));
}

// The names of curves, each beside a line of its colour and dash pattern.
function legendOf(curves) {
  return curves.map(({name, colour, dash}) => make("span", {class: "key"},
    make("svg:svg", {viewBox: "0 0 32 8", width: 32, height: 8, "aria-hidden": "true"},
         make("svg:line", {x1: 0, x2: 32, y1: 4, y2: 4, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash})),
    name));
}

// A group of buttons, one for each token. The button of the token with the index `at` is pressed. The
// arrow keys choose the token before or after it, so that the group is one stop of the tab key.
function tokenButtons(tokens, at, choose) {
  const group = make("div", {class: "tokens", role: "group", "aria-label": "token"});
  tokens.forEach((token, i) => {
    const button = make("button", {"aria-pressed": String(i === at), tabindex: i === at ? 0 : -1}, token);
    button.addEventListener("click", () => choose(i));
    group.append(button);
  });
  group.addEventListener("keydown", event => {
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tokens.length - 1}[event.key];
    if (to === undefined || to < 0 || to >= tokens.length) return;
    event.preventDefault();
    choose(to);
  });
  return group;
}

// Every token up to the query `at`, shaded by its weight for this query. For FAL heads, marks the key that
// the head found. Their weight belongs to the token after it.
function shadedTokens(tokens, head, at) {
  const row = make("div", {class: "tokens"});
  for (let token = 0; token <= at; ++token) {
    let weight = head.weights ? head.weights[at * tokens.length + token] : 0, found = false;
    if (head.selected) {
      const selected = head.selected[at];
      found = selected === token;
      weight = selected >= 0 && selected + 1 === token ? 1 : 0;
    }
    const attributes = {style: `--weight: ${weight.toFixed(3)}`, title: `${tokens[token]}: ${weight.toFixed(3)}`};
    if (found) attributes.class = "found";
    row.append(make("span", attributes, tokens[token]));
  }
  return row;
}

const percent = share => (100 * share).toFixed(1) + " %";

// The math mode of a training in the module: portable if the module's kernels have it.
const mathOf = kernels => kernels === "simd128" ? "portable" : "exact";
