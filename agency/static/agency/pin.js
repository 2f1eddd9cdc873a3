"use strict";

// The form of a PIN. Where it is not its turn yet (429), the page sends it again by itself, after `Retry-After`.
// Without scripts the answer says so, and the form is sent again by hand.
const REDIRECT = "HX-Redirect";

async function send(form) {
  const [button] = form.querySelectorAll("button:not([type])");
  const waiting = document.querySelector("[data-waiting]");
  button.disabled = true;
  let answer, page;
  try {
    const body = new URLSearchParams(new FormData(form));
    answer = await fetch(form.action, { method: "POST", body, headers: { "HX-Request": "true" } });
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {  // the network is away
    button.disabled = false;
    form.submit();
    return;
  }
  if (answer.headers.has(REDIRECT)) {
    button.disabled = false;  // for who comes back
    location.assign(answer.headers.get(REDIRECT));
  } else if (answer.status === 429 && !page.querySelector("[data-final]")) {
    document.getElementById("pin_error")?.remove();
    waiting.hidden = false;
    countDown(Number(answer.headers.get("Retry-After") || 2), () => send(form));
  } else {
    show(page);
  }
}

function countDown(seconds, done) {
  document.querySelector("[data-seconds]").textContent = seconds;
  if (seconds > 0) setTimeout(countDown, 1000, seconds - 1, done);
  else done();
}

// The page that came instead: it asks again, or says what is wrong.
function show(page) {
  const main = page.getElementById("main");
  if (!main) {
    location.reload();
    return;
  }
  document.title = page.title;
  document.getElementById("main").replaceChildren(...main.childNodes);
  prepareHiding();
  window.offerPasskeys?.();
  (document.getElementById("pin") || document.getElementById("main")).focus();
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-turns]")) return;
  event.preventDefault();
  send(event.target);
});
