"use strict";

// What this phone keeps of a wallet for when there is no network: agency/holders/wallet/offline.py.
const PLACE = "wallet-cards";
const [, ownKey] = document.cookie.match(/(?:^|; )agency_wallet_cards=([\w-]+)/) || [];

// What is of another session, or of one that has ended, is removed.
function readKept() {
  const found = JSON.parse(localStorage.getItem(PLACE));
  if (found && found.key === ownKey) return found;
  localStorage.removeItem(PLACE);
  return null;
}

// The page may be of a session that another tab has ended meanwhile.
function keep({ kept, worker }) {
  const shown = JSON.parse(kept);
  if (shown.key !== ownKey) return;
  localStorage.setItem(PLACE, JSON.stringify({ ...shown, at: Date.now() }));
  if (navigator.serviceWorker) navigator.serviceWorker.register(worker).catch(() => {});
}

function drawKept(card) {
  const made = document.getElementById("kept-card").content.cloneNode(true);
  const find = (selector) => made.querySelector(selector);
  find("bdi").textContent = card.name;
  find(".badge").textContent = card.state;
  find(".badge").classList.add(card.isOver ? "bad" : "good");
  find(".id-card").classList.toggle("is-dark", card.isDark);
  find(".id-card").classList.toggle("is-over", card.isOver);
  find("rect").setAttribute("fill", card.color);
  find("g").setAttribute("fill", card.isDark ? "#000" : "#fff");
  return made;
}

function showKept(place, found) {
  place.append(...found.cards.map(drawKept));
  document.getElementById("kept-by").textContent = found.organization;
  const { lang } = document.documentElement;
  const written = new Intl.DateTimeFormat(lang === "en" ? "en-GB" : lang, { dateStyle: "long", timeStyle: "short" });
  const at = new Date(found.at);
  for (const time of document.querySelectorAll("time")) {
    time.dateTime = at.toISOString();
    time.textContent = written.format(at);
  }
  for (const one of document.querySelectorAll("[data-kept-only]")) one.hidden = false;
  document.getElementById("none-kept").hidden = true;
}

try {
  const found = readKept();
  const read = document.querySelector("[data-kept]");
  const place = document.getElementById("kept-cards");
  if (read) keep(read.dataset);
  if (place && found && found.cards.length) showKept(place, found);
  if (place) addEventListener("online", () => location.reload());
} catch {
  // This browser keeps nothing, as its owner wants.
}
