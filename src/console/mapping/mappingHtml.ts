import { type HtmlValue, html } from '@prairielearn/html'
import { describeField, type Mapping } from '../../mapping/mapping.ts'
import { pluralize } from '../../plainText.ts'
import { serviceResources } from '../../resources.ts'
import type { Viewer } from '../guard/viewer.ts'
import { emptyNote, factList, foreignTextHtml, notice, paragraph, section, table } from '../html/elements.ts'
import { form, hiddenField } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import { jsonText, mappedTable } from '../record/valuesHtml.ts'
import { maskedNote } from '../valueAccess.ts'
import type { MappingResult, MappingView } from './readMapping.ts'

export function renderMapping(view: MappingView, viewer: Viewer): string {
  const { files, result } = view
  return layout({ title: 'Mapping', current: '/mapping', viewer }, [
    files.kind === 'invalid' ? notice('bad', lines(files.problem)) : '',
    result === null ? '' : resultSection(view, result, viewer),
    files.kind === 'invalid' ? '' : [pasteSection(view, viewer), waitingSection(view), filesSection(view)],
  ])
}

const lines = (text: string) => text.split('\n').map((line) => paragraph(line.trim()))

function pasteSection({ files, form: { type, payload } }: MappingView, viewer: Viewer): HtmlValue {
  const types = files.kind === 'value' ? [...files.mappings.keys()].sort() : []
  const options = types.map((each) => html`<option${each === type ? html` selected` : ''}>${each}</option>`)
  return section('try', 'Try a payload', [
    html`<p class="quiet">Shows the request that it would become. Nothing is sent or kept.</p>`,
    form({ action: '/mapping', viewer, class: 'paste', changes: false }, [
      html`<p><label>Type<select name="type">${options}</select></label></p>`,
      html`<p><label for="payload">Payload, or one per line</label><textarea id="payload" name="payload" rows="8" spellcheck="false" required>
${payload}</textarea></p>`,
      html`<button class="main">Map</button>`,
    ]),
  ])
}

const previewsShown = 20

function resultSection({ files, isShown }: MappingView, result: MappingResult, viewer: Viewer): HtmlValue {
  if (result.kind === 'refused') return notice('bad', paragraph(`${result.problem}.`))
  const { previews, warnings, outboxId } = result
  const isMasked = outboxId !== null && !isShown
  const mapped = previews.filter(({ kind }) => kind === 'mapped').length
  const mappingOf = (type: string) => (files.kind === 'value' ? files.mappings.get(type) : undefined)
  const askingFields = isShown
    ? html`<p>You see the values for a quarter of an hour.</p>`
    : html`<p>${maskedNote(viewer)}</p>${hiddenField('outbox', outboxId ?? '')}<button>Show the values</button>`
  const [first] = previews
  const title = html`What ${previews.length === 1 ? foreignTextHtml(first?.name ?? '', 60) : 'they'} would become`
  return section('result', title, [
    previews.length > 1 ? html`<p>${mapped} of ${pluralize(previews.length, 'record')} map.</p>` : '',
    warnings.length > 0 ? notice('attention', warnings.map(paragraph)) : '',
    outboxId === null ? '' : form({ action: '/mapping/show', viewer, changes: false }, askingFields),
    previews
      .slice(0, previewsShown)
      .map((preview) => [
        previews.length > 1 ? html`<h3>${preview.name}</h3>` : '',
        mappedTable(preview, mappingOf(preview.type), isMasked),
        preview.kind === 'mapped' ? jsonText(preview.body, isMasked, `The request of ${preview.name}`) : '',
      ]),
    previews.length > previewsShown ? html`<p class="quiet">… and ${previews.length - previewsShown} more</p>` : '',
  ])
}

const waitingSection = ({ waiting }: MappingView) =>
  section('waiting', 'Rows waiting in the outbox, the next first', waitingRows(waiting))

function waitingRows(waiting: MappingView['waiting']): HtmlValue {
  if (waiting.kind === 'unreadable') return notice('attention', lines(waiting.problem))
  if (waiting.rows.length === 0) return emptyNote('No row waits in the outbox.')
  const rows = waiting.rows.map(({ outboxId, type, key, createdAt }) => [
    html`<a href="/mapping?outbox=${encodeURIComponent(outboxId)}">${foreignTextHtml(outboxId, 36)}</a>`,
    foreignTextHtml(type, 24),
    key === null ? '–' : foreignTextHtml(key, 24),
    foreignTextHtml(createdAt ?? '–', 40),
  ])
  return table('Waiting rows', ['Row', 'Type', 'Key', 'Created'], rows)
}

function filesSection({ files, dir, differing }: MappingView): HtmlValue {
  if (files.kind === 'invalid') return ''
  const types = (differing ?? []).map((type) => `“${type}”`).join(', ')
  const other = html`<p>The daemon’s files differ from those of this machine in ${types}. If its files are right on disk, run <code>outboxd reload</code>.</p>`
  return section('files', 'The mapping files', [
    html`<p class="quiet">In <code>${dir}</code> on the machine where this console runs.</p>`,
    types === '' ? '' : notice('attention', other),
    [...files.mappings.values()].map(fileOf),
  ])
}

const fileOf = ({ type, endpoint, track, sendsSubmissionId, fields }: Mapping) => html`<h3>${type}</h3>
${factList([
  ['becomes', html`<code>POST ${serviceResources[endpoint].path}</code>`],
  ['tracked', track ? 'until the service has finished it' : 'no: done when it is accepted'],
  ['sends its id', sendsSubmissionId ? 'yes' : null],
])}
${table(
  `Fields of ${type}`,
  ['Field', 'From', 'Rule'],
  fields.map((field) => [
    html`<code>${field.name}</code>`,
    field.from === null ? '(constant)' : html`<code>${field.from}</code>`,
    html`<span class="brief">${describeField(field)}</span>`,
  ]),
)}`
