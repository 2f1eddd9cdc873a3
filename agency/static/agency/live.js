"use strict";

// Pages with a live part. What was opened stays open when the page is read again (poll.js).
let opened = [];

document.addEventListener("htmx:beforeSwap", () => {
  opened = [...document.querySelectorAll("#live details[open][id]")].map((details) => details.id);
});

document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  const announced = document.getElementById("state-change");
  if (announced) {
    const state = document.querySelector("#live .badge").textContent;
    const next = document.querySelector("#live .next").textContent;
    announced.textContent = `${state}. ${next}`;
  }
  prepareCopyButtons();
  showTimes();
});
