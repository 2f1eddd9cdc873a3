"use strict";

// Shows a page of its own where a page of the wallet cannot be read. It keeps that page and its files, and nothing
// that it passes on. `kept` is from the script that imports this one.
const PREFIX = "wallet-";
const NAME = PREFIX + kept.version;
// Not the pages before the PIN, nor those of a link, which may be of another wallet.
const PAGES = /^((inbox|history|me|add|show|keep)|(offers|requests)\/[\w-]+)?$/;

async function install() {
  const cache = await caches.open(NAME);
  await cache.addAll([kept.page, ...kept.files].map((one) => new Request(one, { cache: "no-cache" })));
  await self.skipWaiting();
}

async function activate() {
  const former = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== NAME);
  await Promise.all(former.map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function read(request, inPlace) {
  try {
    return await fetch(request);
  } catch (error) {
    const found = await caches.match(inPlace, { ignoreVary: true });
    if (found) return found;
    throw error;
  }
}

function isPage({ mode, url }) {
  const { pathname } = new URL(url);
  return mode === "navigate" && pathname.startsWith(kept.scope) && PAGES.test(pathname.slice(kept.scope.length));
}

self.addEventListener("install", (event) => event.waitUntil(install()));
self.addEventListener("activate", (event) => event.waitUntil(activate()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (isPage(request)) event.respondWith(read(request, kept.page));
  else if (kept.files.includes(new URL(request.url).pathname)) event.respondWith(read(request, request.url));
});
