"use strict";

// Reads the part of a page that changes again, until it has no `data-watched` any more: every 2 s while the
// page is visible, every 10 s while it is hidden, and at once when somebody comes back to it. `data-every`: the
// least time in between, in milliseconds.
const VISIBLE_MS = 2000;
const HIDDEN_MS = 10000;
let timer = 0;

function watched() {
  return document.querySelector("[data-watched]");
}

function look() {
  if (watched()) htmx.trigger(watched(), "look");
  schedule();
}

function schedule() {
  clearTimeout(timer);
  if (!watched()) return;
  const every = document.hidden ? HIDDEN_MS : VISIBLE_MS;
  timer = setTimeout(look, Math.max(every, Number(watched().dataset.every || 0)));
}

document.addEventListener("visibilitychange", () => { if (document.hidden) schedule(); else look(); });
// Phones restore a page from memory when somebody comes back from another app.
window.addEventListener("pageshow", (event) => { if (event.persisted) look(); else schedule(); });
document.addEventListener("htmx:afterSwap", schedule);
// A failed request is followed by the next one.
document.addEventListener("htmx:sendError", (event) => event.preventDefault());
