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

// The accessible name is the label, which the first <span> shows, and what follows it.
async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const shown = button.querySelector("span") || button;
  const label = shown.textContent;
  const { copied = "Copied", selected = "Selected" } = button.dataset;
  try {
    await navigator.clipboard.writeText(source.textContent);
    shown.textContent = copied;
  } catch {
    select(source);
    shown.textContent = document.execCommand("copy") ? copied : selected;
  }
  if (status) status.textContent = `${shown.textContent}.`;
  setTimeout(() => { shown.textContent = label; }, 2000);
}

function prepareCopyButtons() {
  for (const button of document.querySelectorAll("[data-copy][hidden]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

prepareCopyButtons();

// `data-share` is an address that the device's own way of sharing takes, where it has one; else the link leads on.
function prepareSharing() {
  for (const link of navigator.share ? document.querySelectorAll("[data-share]") : []) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      navigator.share({ url: link.dataset.share }).catch(() => {});
    });
  }
}

prepareSharing();

// `data-hides` is the id of a field whose text the button hides and shows again.
function prepareHiding() {
  for (const button of document.querySelectorAll("[data-hides]")) {
    const field = document.getElementById(button.dataset.hides);
    const name = () => {
      button.textContent = field.type === "password" ? button.dataset.show : button.dataset.hide;
    };
    button.addEventListener("click", () => {
      field.type = field.type === "password" ? "text" : "password";
      name();
    });
    name();
    button.hidden = false;
  }
}

prepareHiding();

// Times are sent in UTC and shown in the reader's zone; the title keeps UTC. They are written as the rest of the
// page is, in its language and not the browser's: an English page has "24 Nov 2026" everywhere.
const { lang } = document.documentElement;
const locale = lang === "en" ? "en-GB" : lang || undefined;
const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const second = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });

function showTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const form = "day" in time.dataset ? day : "second" in time.dataset ? second : minute;
    time.textContent = form.format(new Date(time.dateTime));
  }
}

showTimes();

// The answer to a form may be a page of its own address: a reload and the way back lead there, and send nothing again.
const answer = document.querySelector("[data-address]");
if (answer) history.replaceState(null, "", answer.dataset.address);

// A color is typed, or picked beside it. Empty is our own.
for (const picker of document.querySelectorAll("[data-picks]")) {
  const field = document.getElementById(picker.dataset.picks);
  picker.hidden = false;
  const follow = () => { picker.value = /^#[0-9a-f]{6}$/i.test(field.value) ? field.value : "#0b6b62"; };
  follow();
  field.addEventListener("input", follow);
  picker.addEventListener("input", () => { field.value = picker.value; });
}

for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}

// Escape closes the drawer of the menu, as its link does.
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && location.hash === "#menu") location.hash = "#main";
});

// "/" leads to the search field, except where it is typed.
document.addEventListener("keydown", (event) => {
  const find = document.getElementById("find");
  if (!find || event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, [contenteditable]")) return;
  event.preventDefault();
  find.focus();
  find.select();
});
