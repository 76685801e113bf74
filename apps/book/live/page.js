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
    for (const control of element("live").querySelectorAll("button, input")) control.disabled = true;
  }
  return there;
}
