"use strict";

// The page of a link. Its state is read again until it ends (poll.js).
const WALLET_MS = 2500;
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
});

prepare();
remember();
