"use strict";

// Counts the seconds of `data-counts` down, by the clock, and then reads the part again (poll.js).
for (const shown of document.querySelectorAll("[data-counts]")) {
  const end = Date.now() + Number(shown.textContent) * 1000;
  const timer = setInterval(() => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    shown.textContent = left;
    if (left) return;
    clearInterval(timer);
    look();
  }, 250);
}
