// What reaches over the right edge of the page and is not in a box that scrolls or that has the reader leave it out.
(() => {
  const edge = document.documentElement.clientWidth + 0.5;
  const isCutOff = (node) => {
    for (let box = node.parentElement; box && box !== document.body; box = box.parentElement) {
      const { overflowX, position } = getComputedStyle(box);
      if (overflowX !== 'visible' && box.getBoundingClientRect().right <= edge) return true;
      if (position === 'fixed') return false;
    }
    return false;
  };
  const found = [];
  for (const node of document.body.querySelectorAll('*')) {
    const { left, right: end, width, height } = node.getBoundingClientRect();
    // What a box holds may reach further than the box.
    const isOpen = node instanceof HTMLElement && getComputedStyle(node).overflowX === 'visible';
    const right = isOpen && node.children.length === 0 ? Math.max(end, left + node.scrollWidth) : end;
    if (right <= edge || width < 2 || height < 2 || isCutOff(node)) continue;
    found.push(`${node.tagName.toLowerCase()}.${node.getAttribute('class') ?? ''} to ${right}: ${node.textContent.trim().slice(0, 60)}`);
  }
  return found.slice(0, 20);
})()
