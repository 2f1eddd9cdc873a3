"use strict";

// The page of a kiosk. What it shows is read again (poll.js); this script says when it cannot be read, and
// takes an answer off the screen in time, whether there is a network or not.
let deadline = 0;
let lock = null;

function state() {
  return document.getElementById("state");
}

// trouble: the id of a message, or "" when the page could be read. An answer stays for its time; a code that
// may be too old is not shown.
function show(trouble) {
  if (trouble && deadline) return;
  for (const one of document.querySelectorAll(".trouble")) one.hidden = one.id !== trouble;
  state().hidden = trouble !== "";
}

function startTime() {
  const seconds = Number(state().dataset.seconds || 0);
  deadline = seconds ? Date.now() + seconds * 1000 : 0;
}

// By the clock, because timers stand still while a device sleeps.
function clearAnswer() {
  if (!deadline || Date.now() < deadline) return;
  deadline = 0;
  state().replaceChildren();
  document.getElementById("state-change").textContent = "";
  if (!navigator.onLine) show("no-network");
  look();
}

async function stayAwake() {
  if (document.hidden || !navigator.wakeLock || (lock && !lock.released)) return;
  try {
    lock = await navigator.wakeLock.request("screen");
  } catch {
    // The device sleeps when it wants to, and the page goes on afterwards.
  }
}

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  const { status } = detail.xhr;
  const isRead = (status >= 200 && status < 300) || status === 404;
  show(isRead ? "" : status === 0 ? "no-network" : "no-service");
});
document.addEventListener("htmx:afterSwap", () => {
  startTime();
  show("");
  const heading = state().querySelector("h1");
  document.title = heading.textContent;
  document.getElementById("state-change").textContent = heading.textContent;
});

window.addEventListener("offline", () => show("no-network"));
window.addEventListener("online", look);
document.addEventListener("visibilitychange", () => { clearAnswer(); stayAwake(); });
setInterval(clearAnswer, 250);

const button = document.getElementById("full-screen");
if (document.fullscreenEnabled) {
  button.hidden = false;
  button.addEventListener("click", () => document.documentElement.requestFullscreen().catch(() => {}));
  document.addEventListener("fullscreenchange", () => { button.hidden = Boolean(document.fullscreenElement); });
}

stayAwake();
document.addEventListener("DOMContentLoaded", look);  // after htmx, which listens too
