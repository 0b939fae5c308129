// Comfort only: every page works without this file.
"use strict";

// Where there is room, filters stand open.
if (matchMedia("(min-width: 52rem)").matches) {
  for (const filters of document.querySelectorAll("details.filters")) filters.open = true;
}

// The lines of long work as they come.
const progress = document.getElementById("progress");
if (progress) {
  const news = new EventSource(progress.dataset.events);
  news.addEventListener("lines", (event) => {
    progress.replaceChildren(
      ...JSON.parse(event.data).map((line) => {
        const item = document.createElement("li");
        item.textContent = line;
        return item;
      }),
    );
  });
  news.addEventListener("end", (event) => {
    news.close();
    window.location.replace(JSON.parse(event.data));
  });
}

// Nothing is sent twice.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", () => {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  });
}
