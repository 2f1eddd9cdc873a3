"use strict";

// Pages with a live part. What was opened stays open when the page is read again (poll.js).
let opened = [];
let hadCode = false;

document.addEventListener("htmx:beforeSwap", () => {
  hadCode = Boolean(document.querySelector("#live .qr"));
  opened = [...document.querySelectorAll("#live details[open][id]")].map((details) => details.id);
});

document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  // The code that a phone has scanned turns into the card.
  if (hadCode && !document.querySelector("#live .qr")) {
    const card = document.querySelector("#live .id-card");
    if (card) card.classList.add("turned");
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
