"use strict";

// Loads a script of the book.
function load(script) {
  return new Promise((resolve, reject) => {
    const made = document.createElement("script");
    made.src = document.body.dataset.top + script;
    made.addEventListener("load", resolve);
    made.addEventListener("error", () => reject(new Error(script + " cannot be read")));
    document.head.append(made);
  });
}

// Finds the pages that contain all words of a question. Pages whose titles contain more of the
// words are listed first.
function find(question) {
  const words = question.toLowerCase().split(/\s+/).filter(word => word.length > 1);
  if (words.length === 0) return [];
  return pages
    .map(page => {
      const title = page.title.toLowerCase(), text = page.text.toLowerCase();
      if (!words.every(word => title.includes(word) || text.includes(word))) return null;
      const inTitle = words.filter(word => title.includes(word)).length;
      const count = words.reduce((sum, word) => sum + text.split(word).length - 1, 0);
      return {page, rank: 1000 * inTitle + count, at: text.indexOf(words[0])};
    })
    .filter(found => found !== null)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, 20);
}

// The texts of all pages are loaded when the reader begins to search.
let texts = null;
const loadTexts = () => texts ??= load("search.js");

async function show() {
  await loadTexts();
  const question = document.getElementById("search").value, place = document.getElementById("found");
  place.replaceChildren();
  place.hidden = question.trim().length < 2;
  if (place.hidden) return;
  const found = find(question);
  const list = document.createElement("ol");
  for (const {page, at} of found) {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = document.body.dataset.top + page.page;
    link.textContent = page.title;
    const around = document.createElement("small");
    const start = Math.max(0, at - 60);
    around.textContent = at < 0 ? "" : " … " + page.text.slice(start, at + 100).replace(/\s+/g, " ") + " …";
    item.append(link, document.createElement("br"), around);
    list.append(item);
  }
  place.append(found.length > 0 ? list : "Nothing has all of these words.");
}

function makeSteps(figure) {
  const slider = figure.querySelector("input"), said = figure.querySelector("output");
  const steps = figure.querySelectorAll(".step");
  const go = step => {
    slider.value = step;
    steps.forEach((one, i) => one.toggleAttribute("hidden", i !== Number(slider.value)));
    said.textContent = "query " + slider.value;
  };
  slider.addEventListener("input", () => go(slider.value));
  for (const button of figure.querySelectorAll("button")) {
    button.addEventListener("click", () => go(Number(slider.value) + Number(button.dataset.move)));
  }
}

// The module in a worker, which checks answers. It is loaded when the first answer is checked.
let checker = null;
async function openChecker() {
  await Promise.all([load("live/longhand.wasm.js"), load("live/longhand.js")]);
  return new LonghandWorker(await unpackLonghand(longhandModule));
}

// Adds a field for the answer to an exercise.
function makeExercise(place) {
  const form = document.createElement("form"), field = document.createElement("input");
  const button = document.createElement("button"), said = document.createElement("output");
  form.className = "controls";
  field.setAttribute("aria-label", "derivative by " + place.dataset.by);
  field.placeholder = "derivative by " + place.dataset.by;
  field.autocomplete = "off";
  field.spellcheck = false;
  button.textContent = "check";
  form.append(field, button, said);
  form.addEventListener("submit", async event => {
    event.preventDefault();
    said.className = "";
    said.value = "checking";
    try {
      checker ??= openChecker();
      const {function: expression, by, from, to} = place.dataset;
      const check = await (await checker).ask(
        {do: "derivative", expression, typed: field.value, by, from: Number(from), to: Number(to)});
      said.className = check.right ? "right" : "wrong";
      if (check.right) {
        said.value = "right at all " + check.rows.length + " points";
        return;
      }
      const {at, typed, quotient} = check.rows.find(row => !row.right);
      const point = Object.entries(at).map(([name, value]) => name + " = " + value.toFixed(4)).join(", ");
      said.value = "wrong: at " + point + " the answer is " + typed?.toPrecision(6) + ", and the difference quotient is " +
        quotient.toPrecision(6) + (check.hint ? "; " + check.hint : "");
    } catch (error) {
      said.className = "wrong";
      said.value = error.message;
    }
  });
  place.prepend(form);
}

document.getElementById("search").addEventListener("focus", loadTexts);
document.getElementById("search").addEventListener("input", show);
document.querySelectorAll(".steps").forEach(makeSteps);
if ("module" in document.body.dataset) document.querySelectorAll(".exercise").forEach(makeExercise);
