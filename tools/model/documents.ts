import { Broken, type Index, Model, repeat } from './checker.ts'

interface Version {
  place: number
  content: string
}
const newState = {
  /** Each transaction of the ERP changes its part of the document, and the trigger writes a row for it. */
  transactions: repeat(2, 'not begun' as 'not begun' | 'open' | 'committed' | 'captured'),
  captures: repeat(2, null as { row: Index; content: string | null } | null),
  captured: 0,
  newest: null as Version | null,
  isWaiting: false,
  sent: [] as string[],
  isListed: false,
  faults: 0,
}
type State = typeof newState

/** A document of two parts. Its content is a digit for each part: 1 if that has changed. */
export class Documents extends Model<State> {
  begin(): State {
    return newState
  }

  steps({ transactions, captures, newest, isWaiting }: State): void {
    const readsEarly = this.is('the content is read before the document is locked')
    for (const i of [0, 1] as const) {
      const isFirst = i === 0 || transactions[0] !== 'not begun'
      if (transactions[i] === 'not begun' && isFirst) this.step(`the ERP writes row ${i}`).transactions[i] = 'open'
      if (transactions[i] === 'open') this.step(`the ERP commits row ${i}`).transactions[i] = 'committed'
      const isFree = captures.every((capture) => capture === null || (readsEarly && capture.row !== i))
      for (const d of [0, 1] as const)
        if (transactions[i] === 'committed' && captures[d] === null && isFree)
          this.step(`daemon ${d} locks the document for row ${i}`).captures[d] = { row: i, content: null }
    }
    for (const d of [0, 1] as const) {
      const capture = captures[d]
      const content = transactions.map((is) => (is === 'committed' || is === 'captured' ? '1' : '0')).join('')
      if (capture?.content === null) this.step(`daemon ${d} reads ${content}`).captures[d] = { ...capture, content }
      else if (capture)
        this.capture(this.step(`daemon ${d} captures ${capture.content}`), d, capture.row, capture.content)
    }
    if (newest && isWaiting) this.send(this.step(`${newest.content} is sent`), newest.content)
  }

  capture(next: State, d: Index, row: Index, content: string): void {
    const place = this.is('versions are in the order of ids') ? row : next.captured
    next.captured++
    next.transactions[row] = 'captured'
    next.captures[d] = null
    const isOld = next.newest && place < next.newest.place
    const isEqual = next.newest?.content === content && !this.is('an equal content is a version')
    if (isOld || isEqual) return
    if (this.is('changes are sent once') && next.sent.length > 0)
      next.isListed = !this.is('a later change is not listed')
    else {
      next.newest = { place, content }
      next.isWaiting = true
    }
  }

  send(next: State, content: string): void {
    const last = next.sent.at(-1) ?? '00'
    next.isWaiting = false
    next.sent.push(content)
    if (content === last) throw new Broken(`${content} is sent twice`)
    if ([0, 1].some((i) => Number(content[i]) < Number(last[i]))) throw new Broken(`${content} is sent after ${last}`)
  }

  isEnd({ transactions, isWaiting, sent, isListed }: State): boolean {
    return transactions.every((is) => is === 'captured') && !isWaiting && (sent.at(-1) === '11' || isListed)
  }
}
