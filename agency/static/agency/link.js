"use strict";

// The page of a link. Its state is read again until it ends: every 2 s while the page is
// visible, every 10 s while it is hidden, and at once when somebody comes back to it.
const VISIBLE_MS = 2000;
const HIDDEN_MS = 10000;
const WALLET_MS = 2500;
const seenKey = `state of ${location.pathname}`;
let timer = 0;

function watched() {
  return document.querySelector("#state[data-watched]");
}

function look() {
  if (watched()) htmx.trigger(watched(), "look");
  schedule();
}

function schedule() {
  clearTimeout(timer);
  if (watched()) timer = setTimeout(look, document.hidden ? HIDDEN_MS : VISIBLE_MS);
}

document.addEventListener("visibilitychange", () => { if (document.hidden) schedule(); else look(); });
// Phones restore a page from memory when somebody comes back from the wallet app.
window.addEventListener("pageshow", (event) => { if (event.persisted) look(); else schedule(); });

// A phone may also drop a page while the wallet app is open and load it anew. The new
// page must still say that it is done, not that somebody has used the link.
function remember() {
  const state = document.getElementById("state");
  try {
    if (watched()) sessionStorage.setItem(seenKey, state.dataset.state);
    else if (state.dataset.status && sessionStorage.getItem(seenKey)) {
      const address = `${state.dataset.status}?seen=${sessionStorage.getItem(seenKey)}`;
      htmx.ajax("GET", address, { target: "#state", swap: "outerHTML" });
    }
  } catch {
    // Without storage the page says "used", which is true too.
  }
}

function prepare() {
  const details = document.querySelector(".by-camera");
  if (details && window.matchMedia("(max-width: 46rem)").matches) details.open = false;
  const button = document.getElementById("open-wallet");
  const help = document.getElementById("no-wallet");
  if (button && help) {
    button.addEventListener("click", () => {
      setTimeout(() => { if (!document.hidden) help.open = true; }, WALLET_MS);
    });
  }
  const share = document.querySelector("[data-share]");
  if (share && navigator.share) {
    share.addEventListener("click", (event) => {
      event.preventDefault();
      navigator.share({ url: share.dataset.share }).catch(() => {});
    });
  }
}

document.addEventListener("htmx:afterSwap", () => {
  const state = document.getElementById("state");
  const heading = state.querySelector("h1");
  document.getElementById("state-change").textContent =
    `${heading.textContent}. ${(state.querySelector(".next") || heading).textContent}`;
  prepareCopyButtons();
  prepare();
  remember();
  schedule();
});
// The state is polled: a failed request is followed by the next one.
document.addEventListener("htmx:sendError", (event) => event.preventDefault());

prepare();
remember();
