// The search of the reference, and what else a page can do only with a script: the menu closes behind a link, and the
// contents show where the reader is. The index is read from the page; the page of a problem asks for the reference first.
(() => {
  'use strict';
  const MOST_OF_A_KIND = 6;
  // Neither is told by the path of this page: a proxy may serve it under a prefix.
  const isReference = document.querySelector('article[data-kind=Operations]') !== null;
  const reference = document.querySelector('.brand').href;

  const box = document.querySelector('.search');
  const input = box.querySelector('input');
  const status = box.querySelector('[role=status]');
  const panel = box.querySelector('.panel');
  const message = box.querySelector('.message');
  const list = box.querySelector('[role=listbox]');
  const menu = document.getElementById('menu');

  // ---- The index: what there is to find.

  const textOf = (node) => (node ? node.textContent.replace(/\s+/g, ' ').trim() : '');
  // `Idempotency-Key`, `idempotencyKey` and `idempotency key` are one name.
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

  function indexOf(page) {
    const entries = [];
    const fields = new Map();
    const add = (kind, id, name, names, says) => {
      const entry = { kind, href: (isReference ? '' : reference) + '#' + id, name, names: names.map(plain), places: [] };
      entry.text = [name, ...names, says].join(' ').toLowerCase();
      entries.push(entry);
      return entry;
    };
    for (const article of page.querySelectorAll('article[data-kind]')) {
      const title = textOf(article.querySelector('h3'));
      const path = article.querySelector('.path code');
      const verb = textOf(article.querySelector('.path .verb'));
      const says = textOf(article.querySelector('p:not(.path)'));
      const entry = add(article.dataset.kind, article.id, title, [title, textOf(path), article.id], verb + ' ' + says);
      entry.verb = verb;
      entry.places.push(textOf(path));
      for (const row of article.querySelectorAll('[data-kind=Fields]')) {
        const name = textOf(row.querySelector('dt code'));
        const meaning = textOf(row.querySelector('dd:not(.type)'));
        // A field of one name and one meaning is found once, with all the places where it is.
        const key = name + ' ' + meaning;
        if (!fields.has(key)) fields.set(key, add('Fields', row.id, name, [name], meaning));
        const places = fields.get(key).places;
        if (!places.includes(title)) places.push(title);
      }
    }
    return entries;
  }

  async function load() {
    if (isReference) return indexOf(document);
    const answer = await fetch(reference);
    if (!answer.ok) throw new Error(`the reference was answered with ${answer.status}`);
    return indexOf(new DOMParser().parseFromString(await answer.text(), 'text/html'));
  }

  // A promise: what is typed before the reference has arrived waits for the same one. After a failure it is asked for again.
  let index = null;
  function theIndex() {
    index ??= load().catch((error) => {
      index = null;
      throw error;
    });
    return index;
  }

  // ---- Finding.

  // How well an entry matches: by its whole name, by the beginning of one, within one, or by its words anywhere.
  function score(entry, whole, words) {
    const names = entry.names;
    if (names.some((name) => name === whole)) return 100;
    if (names.some((name) => name.startsWith(whole))) return 60;
    if (names.some((name) => name.includes(whole))) return 40;
    if (words.every((word) => names.some((name) => name.includes(plain(word))))) return 30;
    return words.every((word) => entry.text.includes(word)) ? 10 : 0;
  }

  // How many letters must be changed, added or left out to make one text of the other.
  function distance(one, other) {
    let row = Array.from({ length: other.length + 1 }, (_, at) => at);
    for (let i = 1; i <= one.length; i++) {
      const above = row;
      row = [i];
      for (let j = 1; j <= other.length; j++) {
        row[j] = Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
      }
    }
    return row[other.length];
  }

  const byScore = (one, other) => other.score - one.score;

  function matches(entries, query) {
    const words = query.toLowerCase().split(/[\s/]+/).filter(Boolean);
    const whole = plain(query);
    if (!whole) return [];
    const scored = entries.map((entry) => ({ entry, score: score(entry, whole, words) }));
    return scored.filter((each) => each.score > 0).sort(byScore);
  }

  function similar(entries, query) {
    const whole = plain(query);
    const scored = entries.map((entry) => {
      const least = Math.min(...entry.names.map((name) => distance(whole, name)));
      return { entry, score: 1 - least / Math.max(whole.length, 1) };
    });
    const close = scored.filter((each) => each.score >= 0.65).sort(byScore);
    const isFirst = ({ entry }, at) => close.findIndex((each) => each.entry.name === entry.name) === at;
    return close.filter(isFirst).slice(0, 4);
  }

  // ---- Showing.

  const element = (name, className, ...children) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  };

  let options = [];
  let chosen = -1;

  function choose(at) {
    options[chosen]?.setAttribute('aria-selected', 'false');
    chosen = options.length ? (at + options.length) % options.length : -1;
    const option = options[chosen];
    option?.setAttribute('aria-selected', 'true');
    option?.scrollIntoView({ block: 'nearest' });
    if (option) input.setAttribute('aria-activedescendant', option.id);
    else input.removeAttribute('aria-activedescendant');
  }

  function option(entry) {
    const link = element('a');
    link.href = entry.href;
    link.id = 'result-' + options.length;
    link.setAttribute('role', 'option');
    link.setAttribute('aria-selected', 'false');
    link.tabIndex = -1;
    const name = element(entry.kind === 'Fields' ? 'code' : 'span', 'name', entry.name);
    const places = entry.places.slice(0, 2).join(', ') + (entry.places.length > 2 ? ` and ${entry.places.length - 2} more` : '');
    if (entry.verb) name.prepend(element('span', 'verb ' + entry.verb.toLowerCase(), entry.verb));
    link.append(name, element('small', '', (entry.kind === 'Fields' ? 'in ' : '') + places));
    options.push(link);
    return link;
  }

  function show(found) {
    options = [];
    list.replaceChildren();
    const kinds = new Map();
    for (const { entry } of found) kinds.set(entry.kind, [...(kinds.get(entry.kind) ?? []), entry]);
    for (const [kind, entries] of kinds) {
      const more = entries.length - MOST_OF_A_KIND;
      const heading = element('h4', '', kind, element('small', '', more > 0 ? `${MOST_OF_A_KIND} of ${entries.length}` : ''));
      heading.id = 'results-' + kind.toLowerCase();
      const group = element('div', '', heading, ...entries.slice(0, MOST_OF_A_KIND).map(option));
      group.setAttribute('role', 'group');
      group.setAttribute('aria-labelledby', heading.id);
      heading.setAttribute('role', 'presentation');
      list.append(group);
    }
    choose(0);
  }

  function tell(words, isShown) {
    status.textContent = words;
    message.textContent = words;
    message.hidden = !isShown;
  }

  function setOpen(isOpen) {
    panel.hidden = !isOpen;
    input.setAttribute('aria-expanded', String(isOpen && options.length > 0));
    if (!isOpen) input.removeAttribute('aria-activedescendant');
  }

  async function search() {
    const query = input.value.trim();
    if (!query) {
      show([]);
      tell('', false);
      setOpen(false);
      return;
    }
    let entries;
    try {
      entries = await theIndex();
    } catch {
      show([]);
      tell('The reference could not be loaded, so there is nothing to search. Is the service still running?', true);
      setOpen(true);
      return;
    }
    // Something else may have been typed meanwhile.
    if (query !== input.value.trim()) return;
    const found = matches(entries, query);
    if (found.length > 0) {
      show(found);
      tell(found.length === 1 ? '1 match' : `${found.length} matches`, false);
    } else {
      const close = similar(entries, query);
      show(close);
      const hint = close.length
        ? 'Did you mean:'
        : 'Try one word of a name: an operation, a path, a field, a document or a type of problem.';
      tell(`Nothing matches “${query}”. ${hint}`, true);
    }
    setOpen(true);
  }

  function clear() {
    input.value = '';
    search();
  }

  // To what a link within this page leads, also if the address does not change. The focus goes there as well, so that a
  // screen reader reads on from there.
  function follow(link) {
    const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (!target) return;
    location.hash = link.hash;
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  }

  const isWithinPage = (link) => link.pathname === location.pathname && link.hash !== '';
  const isPlainClick = (event) => event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

  input.addEventListener('input', search);
  input.addEventListener('focus', () => input.value && search());
  input.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!panel.hidden) choose(chosen + (event.key === 'ArrowDown' ? 1 : -1));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (!panel.hidden) options[chosen]?.click();
    } else if (event.key === 'Escape') {
      event.preventDefault();
      if (input.value) clear();
      else input.blur();
    }
  });
  list.addEventListener('click', (event) => {
    const link = event.target.closest('a');
    if (!link || !isPlainClick(event)) return;
    if (isWithinPage(link)) {
      event.preventDefault();
      clear();
      follow(link);
    }
  });
  box.addEventListener('focusout', (event) => {
    if (!box.contains(event.relatedTarget)) setOpen(false);
  });
  // Without this a click would take the focus away and close the list before it counts.
  panel.addEventListener('mousedown', (event) => event.preventDefault());
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  box.hidden = false;

  // ---- The menu, and where the reader is.

  const hideMenu = () => menu.matches(':popover-open') && menu.hidePopover();
  if (HTMLElement.prototype.hidePopover) {
    menu.addEventListener('click', (event) => event.target.closest('a') && hideMenu());
    input.addEventListener('focus', hideMenu);
    matchMedia('(min-width: 52rem)').addEventListener('change', hideMenu);
  }

  const links = new Map([...menu.querySelectorAll('a[href^="#"]')].map((link) => [link.hash.slice(1), link]));
  let current = null;
  const observer = new IntersectionObserver(
    (seen) => {
      const here = seen.filter((each) => each.isIntersecting).pop();
      const link = here && links.get(here.target.id);
      if (!link || link === current) return;
      current?.removeAttribute('aria-current');
      link.setAttribute('aria-current', 'true');
      current = link;
      // `scrollIntoView` would end a scroll of the page that is under way.
      const middle = link.offsetTop - menu.offsetTop - menu.clientHeight / 2;
      if (Math.abs(middle - menu.scrollTop) > menu.clientHeight / 2 - 40) menu.scrollTop = middle;
    },
    { rootMargin: '-15% 0px -80% 0px' },
  );
  for (const id of links.keys()) {
    const section = document.getElementById(id);
    if (section && !section.matches('.group:not(#problem-types)')) observer.observe(section);
  }
})();
