"use strict";

// The page of a kiosk. What it shows is read again (poll.js); this script says when it cannot be read, and
// takes an answer off the screen in time, whether there is a network or not.
let deadline = 0;
let lock = null;
let before = "";
let audio = null;
// Two tones in hertz, rising or falling.
const TONES = { valid: [660, 880], invalid: [262, 196], declined: [262, 196] };
const sound = document.getElementById("sound");

function state() {
  return document.getElementById("state");
}

// trouble: the id of a message, or "" when the page could be read. An answer stays for its time; a code that
// may be too old is not shown.
function show(trouble) {
  if (trouble && deadline) return;
  for (const one of document.querySelectorAll(".trouble")) one.hidden = one.id !== trouble;
  state().hidden = trouble !== "";
  offerScan();
}

// A code that a holder shows is scanned while the kiosk asks. A scanner types like a keyboard.
const scanned = document.getElementById("scan");
const field = document.getElementById("card");

function offerScan() {
  const isAsking = state().dataset.state === "asking";
  if (isAsking && scanned.hidden) document.getElementById("said").textContent = "";
  scanned.hidden = !isAsking || state().hidden;
}

document.addEventListener("keydown", (event) => {
  if (scanned.hidden || event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!event.target.closest("input, button, summary, a")) field.focus();
});

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
  offerScan();
  if (!navigator.onLine) show("no-network");
  look();
}

// The verdict is heard too, if somebody at the screen wants it. A browser plays nothing before the first touch, so
// a choice that is remembered counts from then on.
function setSound(wanted) {
  sound.setAttribute("aria-pressed", wanted);
  if (wanted) {
    audio = audio || new AudioContext();
    audio.resume().catch(() => {});
  }
  try {
    localStorage.setItem("kiosk-sound", wanted);
  } catch {
    // It is chosen again after the page was loaded.
  }
}

function remembersSound() {
  try {
    return localStorage.getItem("kiosk-sound") === "true";
  } catch {
    return false;
  }
}

function hasSound() {
  return sound.getAttribute("aria-pressed") === "true";
}

function play(tones) {
  tones.forEach((hertz, place) => {
    const begin = audio.currentTime + place * 0.2;
    const tone = new OscillatorNode(audio, { frequency: hertz });
    const volume = new GainNode(audio, { gain: 0.3 });
    volume.gain.setValueAtTime(0.3, begin);
    volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.35);
    tone.connect(volume).connect(audio.destination);
    tone.start(begin);
    tone.stop(begin + 0.35);
  });
}

function hear(now) {
  if (now !== before && TONES[now] && hasSound()) play(TONES[now]);
  before = now;
}

if (window.AudioContext) {
  sound.hidden = false;
  setSound(remembersSound());
  sound.addEventListener("click", () => {
    setSound(!hasSound());
    if (hasSound()) play(TONES.valid);
  });
  document.addEventListener("pointerdown", () => { if (audio) audio.resume().catch(() => {}); });
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
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.requestConfig.elt === scanned) {
    scanned.reset();
    return;
  }
  startTime();
  show("");
  hear(state().dataset.state);
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
