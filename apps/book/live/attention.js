"use strict";

let view = null, at = 0, head = 0, writing = false;

const visible = token => token === " " ? "·" : token;
const nameOf = ({layer, head}) => `layer ${layer + 1}, head ${head + 1}`;

function drawNext() {
  const rows = view.predictions[at].map(({label, probability}) => make("tr", {}, make("td", {}, make("code", {}, visible(label))),
    make("td", {class: "bar"}, make("span", {style: `--share: ${probability}`})), make("td", {}, percent(probability))));
  const before = view.tokens.slice(Math.max(0, at - 11), at + 1).join("");
  element("next").replaceChildren(make("table", {class: "shares"}, make("caption", {}, `after “${before}”`), ...rows));
}

function drawShaded() {
  element("shaded").replaceChildren(make("p", {}, make("strong", {}, nameOf(view.heads[head])), ", reading for ",
                                         make("code", {}, visible(view.tokens[at])), ` (token ${at + 1})`),
                                    shadedTokens(view.tokens.map(visible), view.heads[head], at));
}

// The weights of a head as a picture with one pixel for each pair of tokens. Square roots make small
// weights visible.
function mapOf(one, colour) {
  const count = view.tokens.length, canvas = make("canvas", {width: count, height: count});
  const context = canvas.getContext("2d"), picture = context.createImageData(count, count);
  one.weights.forEach((weight, i) => {
    picture.data.set([...colour, Math.round(255 * Math.sqrt(weight))], 4 * i);
  });
  context.putImageData(picture, 0, 0);
  return canvas;
}

function choose(token) {
  at = token;
  draw();
  element("tokens").querySelectorAll("button")[at].focus();
}

function chooseHead(number) {
  head = (number + view.heads.length) % view.heads.length;
  element("maps").querySelectorAll("button").forEach((button, i) => {
    button.setAttribute("aria-pressed", String(i === head));
    button.tabIndex = i === head ? 0 : -1;
    if (i === head) button.focus();
  });
  drawShaded();
}

function drawMaps() {
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--hot").split(",").map(Number);
  element("maps").replaceChildren(...view.heads.map((one, i) => {
    const button = make("button", {"aria-pressed": String(i === head), tabindex: i === head ? 0 : -1, "aria-label": nameOf(one)}, mapOf(one, colour),
                        make("small", {}, nameOf(one)));
    button.addEventListener("click", () => chooseHead(i));
    return button;
  }));
}

function draw() {
  element("tokens").replaceChildren(tokenButtons(view.tokens.map(visible), at, choose));
  drawNext();
  drawShaded();
}

let worker = null, asked = 0;

async function open() {
  const made = new LonghandWorker(await unpackLonghand(longhandModule));
  const bytes = Uint8Array.from(atob(textModel.parameters), character => character.charCodeAt(0));
  const {kernels} = await made.ask({do: "kernels"});
  await made.ask({do: "open", ini: `${textModel.ini}\n[compute]\nmath = ${mathOf(kernels)}\n`}, bytes);
  return made;
}

// Reads the text. Returns false if another text was typed meanwhile.
async function read() {
  const number = ++asked, prompt = element("typed").value;
  if (prompt === "") return false;
  try {
    worker ??= open();
    const result = await (await worker).ask({do: "look", prompt, most: 8});
    if (number !== asked) return false;
    view = result;
    at = view.tokens.length - 1;
    draw();
    drawMaps();
    element("state").value = "";
    return true;
  } catch (error) {
    element("state").value = error.message;
    return false;
  }
}

// Draws one of the listed tokens. With temperature 0, it is the most probable one.
function drawn(predictions) {
  const temperature = Number(element("temperature").value);
  if (temperature === 0) return predictions[0].token;
  const shares = predictions.map(({probability}) => probability ** (1 / temperature));
  let left = Math.random() * shares.reduce((sum, share) => sum + share, 0);
  const found = shares.findIndex(share => (left -= share) < 0);
  return predictions[Math.max(0, found)].token;
}

// Writes `letters` tokens. If the text becomes too long, its beginning is removed.
async function write(letters) {
  if (writing) return;
  writing = true;
  const field = element("typed");
  for (let i = 0; i < letters && view; ++i) {
    const token = drawn(view.predictions.at(-1));
    field.value = (field.value + (token === 10 ? " " : String.fromCharCode(token))).slice(-field.maxLength);
    if (!await read()) break;
  }
  writing = false;
}

element("typed").addEventListener("input", read);
element("one").addEventListener("click", () => write(1));
element("many").addEventListener("click", () => write(24));
element("temperature").addEventListener("input", () => {
  element("temperature-value").value = Number(element("temperature").value).toFixed(1);
});
element("maps").addEventListener("keydown", event => {
  const move = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 4, ArrowUp: -4}[event.key];
  if (move === undefined || !view) return;
  event.preventDefault();
  chooseHead(head + move);
});
if (openPage()) read();
