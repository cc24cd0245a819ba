import type { Exchange } from './exchange.ts'

/** An exchange as it went over the wire, to read. Pure. @param exchange masked */
export function exchangeText({ of, method, origin, path, headers, body, startedAtMs, answer }: Exchange): string {
  const asked = [`${method} ${origin}${path}`, ...headerLines(headers), '', body ?? '']
  const head = `# ${of}, ${new Date(startedAtMs).toISOString()}\n\n`
  return `${head}${asked.join('\n').trimEnd()}\n\n${'-'.repeat(40)}\n\n${answerText(answer)}\n`
}

function answerText(answer: Exchange['answer']): string {
  const took = `after ${Math.round(answer.tookMs)} ms`
  if (answer.kind === 'no-answer') return `no answer ${took}: ${answer.detail}`
  const partly = answer.unreadable === null ? '' : ` (${answer.unreadable})`
  return [`${answer.status} ${took}${partly}`, ...headerLines(answer.headers), '', answer.text].join('\n')
}

const headerLines = (headers: Exchange['headers']) =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
