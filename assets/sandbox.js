// The page at /_sandbox/: renews what it shows every second, and sends its forms to the control API as JSON.

const renewMs = 1000
/** What was taken over last, by id, before anything was unfolded in it. */
const shown = new Map()
const said = document.getElementById('said')

document.documentElement.classList.add('can-change')

document.addEventListener('submit', async (event) => {
  event.preventDefault()
  const form = event.target
  try {
    const response = await fetch(form.getAttribute('action'), requestOf(form))
    const answer = await response.json()
    say(response.ok ? 'Done.' : `Refused: ${answer.detail}`, response.ok)
    document.activeElement?.blur()
    await renew()
  } catch (error) {
    say(`Not sent: ${error.message}`, false)
  }
})

function requestOf(form) {
  const { method } = form.dataset
  const fields = [...form.elements].filter(({ name, value }) => name && value !== '')
  if (fields.length === 0) return { method }
  const body = JSON.stringify(Object.fromEntries(fields.map((field) => [field.name, readField(field)])))
  return { method, body, headers: { 'content-type': 'application/json' } }
}

function readField({ dataset, value }) {
  if (dataset.type === 'number') return Number(value)
  return dataset.type === 'json' ? JSON.parse(value) : value
}

/** Takes over what has changed, but for what somebody is typing in. What is unfolded stays so. */
async function renew() {
  const response = await fetch(location.href)
  if (!response.ok) throw new Error(`the sandbox answers ${response.status}`)
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html')
  for (const old of document.querySelectorAll('[data-live]')) {
    const next = fresh.getElementById(old.id)
    if (next === null || shown.get(old.id) === next.innerHTML || old.contains(document.activeElement)) continue
    shown.set(old.id, next.innerHTML)
    for (const { id } of old.querySelectorAll('details[open]')) next.querySelector(`#${id}`)?.setAttribute('open', '')
    old.replaceChildren(...next.childNodes)
  }
}

let isAway = false
setInterval(async () => {
  if (document.hidden) return
  try {
    await renew()
    if (isAway) say('It answers again.', true)
    isAway = false
  } catch (error) {
    isAway = true
    say(`What is shown is old: ${error.message}`, false)
  }
}, renewMs)

function say(words, isGood) {
  said.textContent = words
  said.className = isGood ? 'good' : 'bad'
}
