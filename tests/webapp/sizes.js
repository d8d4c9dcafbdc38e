// What of the page is not legible as it is: words under 12 pixels by their size, what scrolls
// sideways or reaches beyond the window, and words of charts that are cut.
() => {
  const round = (value) => Math.round(value * 10) / 10;
  const small = {}, wide = {}, cut = [];
  const app = document.querySelector("[data-testid=stApp]") ?? document.body;
  const width = document.documentElement.clientWidth;
  const seen = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && !element.closest(".st-key-unseen");
  const walker = document.createTreeWalker(app, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || ["STYLE", "SCRIPT"].includes(element.tagName) || !seen(element)) continue;
    const range = document.createRange();
    range.selectNode(walker.currentNode);
    const box = range.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const scale = element instanceof SVGElement ? element.getScreenCTM() : { a: 1, b: 0 };
    const size = parseFloat(getComputedStyle(element).fontSize) * Math.hypot(scale.a, scale.b);
    if (size < 11.99) small[text.slice(0, 60)] = round(size);
  }
  for (const element of app.querySelectorAll("*")) {
    if (!seen(element)) continue;
    const style = getComputedStyle(element);
    if (["auto", "scroll"].includes(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
      wide[element.ariaLabel || element.dataset.testid || element.className] =
        element.scrollWidth - element.clientWidth;
  }
  for (const svg of app.querySelectorAll("svg.marks")) {
    if (!seen(svg)) continue;
    const room = svg.getBoundingClientRect();
    for (const word of svg.querySelectorAll("text")) {
      const box = word.getBoundingClientRect();
      if (!word.textContent.trim() || !seen(word)) continue;
      const beyond = Math.max(room.left - box.left, box.right - room.right, room.top - box.top,
        box.bottom - room.bottom, box.right - width, -box.left);
      if (beyond > 1 || word.textContent.includes("…"))
        cut.push(`${word.textContent} (${round(Math.max(beyond, 0))} px)`);
    }
  }
  return { small, wide, cut };
}
