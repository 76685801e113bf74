"use strict";

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

function show(question) {
  const place = document.getElementById("found");
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

document.getElementById("search").addEventListener("input", event => show(event.target.value));
document.querySelectorAll(".steps").forEach(makeSteps);
