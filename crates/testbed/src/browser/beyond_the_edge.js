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
    const { right, width, height } = node.getBoundingClientRect();
    if (right <= edge || width < 2 || height < 2 || isCutOff(node)) continue;
    found.push(`${node.tagName.toLowerCase()}.${node.getAttribute('class') ?? ''} to ${right}: ${node.textContent.trim().slice(0, 60)}`);
  }
  return found.slice(0, 20);
})()
