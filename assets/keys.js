// The keys that /keys lists. They do what a link or button of the page does, and can be turned off.
;(() => {
  const pages = { o: '/', r: '/records', a: '/audit', m: '/mapping', s: '/system' }
  let isAfterG = false

  const areOff = () => localStorage.getItem('keys') === 'off'
  const find = (selector) => document.querySelector(selector)

  /** Moves the focus among the rows of the page. */
  function move(step) {
    const links = [...document.querySelectorAll('main tbody a[href^="/records/"], main .causes a')]
    const here = links.findIndex((link) => link.closest('tr, li').contains(document.activeElement))
    links[Math.max(0, Math.min(links.length - 1, here + step))]?.focus()
  }

  const actions = {
    '/': () => find('input[name=word]')?.focus(),
    j: () => move(1),
    k: () => move(-1),
    x: () => document.activeElement.closest('tr')?.querySelector('input[type=checkbox]')?.click(),
  }

  document.addEventListener('keydown', (event) => {
    const { key, target } = event
    const isTyping = target.matches('input:not([type=checkbox]), textarea, select')
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || areOff() || find('dialog[open]')) return
    const page = isAfterG ? pages[key] : undefined
    isAfterG = key === 'g'
    if (page !== undefined) return location.assign(page)
    const act = actions[key] ?? find(`main [data-key="${CSS.escape(key)}"], footer [data-key="${CSS.escape(key)}"]`)
    if (!act) return
    event.preventDefault()
    if (typeof act === 'function') act()
    else act.click()
  })

  document.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-keys-switch]')
    if (button === null) return
    localStorage.setItem('keys', areOff() ? 'on' : 'off')
    button.textContent = areOff() ? 'The keys are off: turn them on' : 'The keys are on: turn them off'
  })
})()
