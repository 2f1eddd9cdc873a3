"use strict";

// The page of a link. Its state is read again until it ends (poll.js).
const WALLET_MS = 2000;
const RETURN_MS = 5000;
const returnedKey = `returned from ${location.pathname}`;
const seenKey = `state of ${location.pathname}`;

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
      setTimeout(() => { if (!document.hidden) sayNothingOpened(help); }, WALLET_MS);
    });
  }
}

function sayNothingOpened(help) {
  const note = help.querySelector("[data-nothing]");
  help.open = true;
  note.hidden = false;
  help.scrollIntoView({ block: "nearest" });
  document.getElementById("state-change").textContent = note.textContent;
}

// Lead back to the organization once it is done, and only once: whoever comes back with
// the browser's own button stays. While the wallet app is in front, nothing moves.
function leadBack() {
  const link = document.querySelector("[data-return]");
  const note = document.querySelector("[data-returning]");
  if (!link || !note || !note.hidden) return;
  try {
    if (sessionStorage.getItem(returnedKey)) return;
  } catch {
    return;  // without storage the link leads back
  }
  note.hidden = false;
  let timer = 0;
  const start = () => {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(go, RETURN_MS);
  };
  const stay = () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", start);
    sessionStorage.setItem(returnedKey, "yes");
    note.hidden = true;
  };
  const go = () => {
    stay();
    location.assign(link.href);
  };
  note.querySelector("[data-stay]").addEventListener("click", () => { stay(); link.focus(); });
  document.addEventListener("visibilitychange", start);
  start();
}

document.addEventListener("htmx:afterSwap", () => {
  const state = document.getElementById("state");
  const heading = state.querySelector("h1");
  document.title = heading.textContent;
  document.getElementById("state-change").textContent =
    `${heading.textContent}. ${(state.querySelector(".next") || heading).textContent}`;
  prepareCopyButtons();
  prepareSharing();
  prepare();
  remember();
  leadBack();
});

prepare();
remember();
leadBack();
