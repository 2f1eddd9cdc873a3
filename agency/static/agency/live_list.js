"use strict";

// A list that reads itself again (poll.js).
document.addEventListener("htmx:afterSwap", () => {
  prepareCopyButtons();
  showTimes();
});
