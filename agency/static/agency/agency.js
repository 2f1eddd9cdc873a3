"use strict";

// Copy buttons: `data-copy` is the id of the element whose text is copied. Without scripts they stay hidden.
const status = document.getElementById("copy-status");

function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    select(source);
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
  }
  if (status) status.textContent = `${button.textContent}.`;
  setTimeout(() => { button.textContent = label; }, 2000);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

// Times are sent in UTC and shown in the reader's zone; the title keeps UTC.
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const second = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
for (const time of document.querySelectorAll("time[datetime]")) {
  const form = "day" in time.dataset ? day : "second" in time.dataset ? second : minute;
  time.textContent = form.format(new Date(time.dateTime));
}
