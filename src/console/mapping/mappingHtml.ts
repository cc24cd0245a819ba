import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { describeField, describeOptions } from '../../mapping/describeMapping.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { MapPreview } from '../../operations/mapRecords.ts'
import { escapeLines, pluralize } from '../../plainText.ts'
import { resources } from '../../resources.ts'
import type { Viewer } from '../guard/viewer.ts'
import { empty, factList, foreign, notice, table } from '../html/elements.ts'
import { form, hidden } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import { mappedTable, shownJson } from '../record/valuesHtml.ts'
import { maskedWords } from '../sights.ts'
import type { MappingResult, MappingView } from './readMapping.ts'

/** What a payload becomes, the rows that wait, and the mapping files. */
export function renderMapping(view: MappingView, viewer: Viewer): string {
  const { files, result } = view
  return layout({ title: 'Mapping', current: '/mapping', viewer }, [
    files.kind === 'invalid' ? notice('bad', lines(files.problem)) : '',
    result === null ? '' : resultSection(view, result, viewer),
    files.kind === 'invalid' ? '' : [pasteSection(view, viewer), waitingSection(view), filesSection(view)],
    optionsSection(),
  ])
}

const lines = (text: string) => text.split('\n').map((line) => html`<p>${foreign(line.trim(), 600)}</p>`)

function pasteSection({ files, form: { type, payload } }: MappingView, viewer: Viewer): HtmlValue {
  const types = files.kind === 'value' ? [...files.mappings.keys()].sort() : []
  const options = types.map((each) => html`<option${each === type ? html` selected` : ''}>${each}</option>`)
  return html`<section aria-labelledby="try-head"><h2 id="try-head">Try a payload</h2>
<p class="quiet">Shows the request that it would become. Sends nothing, and keeps nothing.</p>
${form({ action: '/mapping', viewer, class: 'paste', changes: false }, [
  html`<p><label>Type<select name="type">${options}</select></label></p>`,
  html`<p><label for="payload">Payload, or one a line</label><textarea id="payload" name="payload" rows="8" spellcheck="false" required>
${payload}</textarea></p>`,
  html`<button class="main">Map</button>`,
])}</section>`
}

function resultSection({ files, isShown }: MappingView, result: MappingResult, viewer: Viewer): HtmlValue {
  if (result.kind === 'refused') return notice('bad', html`<p>${foreign(`${result.problem}.`, 600)}</p>`)
  const { previews, warnings, outboxId } = result
  const isMasked = outboxId !== null && !isShown
  const failing = previews.filter(({ kind }) => kind === 'refused').length
  const asking =
    outboxId === null
      ? ''
      : form(
          { action: '/mapping/show', viewer, changes: false },
          isShown
            ? html`<p>Shown to you for a quarter of an hour.</p>`
            : html`<p>${maskedWords(viewer)}</p>
${hidden('outbox', outboxId)}<button>Show the values</button>`,
        )
  return html`<section aria-labelledby="result-head"><h2 id="result-head">What ${previews.length === 1 ? foreign(previews[0]?.name ?? '', 60) : 'they'} would become</h2>
${previews.length > 1 ? html`<p>${previews.length - failing} of ${pluralize(previews.length, 'record')} map.</p>` : ''}
${
  warnings.length > 0
    ? notice(
        'attention',
        warnings.map((warning) => html`<p>${foreign(warning, 600)}</p>`),
      )
    : ''
}
${asking}
${previews.slice(0, previewsShown).map((preview) => previewOf(preview, files.kind === 'value' ? files.mappings.get(preview.type) : undefined, isMasked, previews.length > 1))}
${previews.length > previewsShown ? html`<p class="quiet">… and ${previews.length - previewsShown} more</p>` : ''}
</section>`
}

const previewsShown = 20

function previewOf(preview: MapPreview, mapping: Mapping | undefined, isMasked: boolean, isNamed: boolean): HtmlValue {
  const request = preview.kind === 'mapped' ? shownJson(preview.body, isMasked) : null
  return html`${isNamed ? html`<h3>${preview.name}</h3>` : ''}
${mappedTable(preview, mapping, isMasked)}
${request === null ? '' : html`<pre tabindex="0" role="group" aria-label="The request of ${preview.name}">${escapeLines(request.text)}</pre>${request.isCut ? html`<p class="quiet">It is longer: here is its beginning.</p>` : ''}`}`
}

function waitingSection({ waiting }: MappingView): HtmlSafeString {
  const shown =
    waiting.kind === 'unreadable'
      ? notice('attention', lines(waiting.problem))
      : waiting.rows.length === 0
        ? empty('No row waits in the outbox.')
        : table(
            'Rows that wait',
            ['Row', 'Type', 'Key', 'Created'],
            waiting.rows.map(({ outboxId, type, key, createdAt }) => [
              html`<a href="/mapping?outbox=${encodeURIComponent(outboxId)}">${foreign(outboxId, 36)}</a>`,
              foreign(type, 24),
              key === null ? '–' : foreign(key, 24),
              foreign(createdAt ?? '–', 40),
            ]),
          )
  return html`<section aria-labelledby="waiting-head"><h2 id="waiting-head">Rows that wait in the outbox, the next first</h2>${shown}</section>`
}

function filesSection({ files, dir, differing }: MappingView): HtmlValue {
  if (files.kind === 'invalid') return ''
  const other =
    differing === null || differing.length === 0
      ? ''
      : notice(
          'attention',
          html`<p>The daemon has other files than this machine: they differ in ${differing.map((type) => `“${type}”`).join(', ')}. <code>outboxd reload</code> has it read its own again.</p>`,
        )
  return html`<section aria-labelledby="files-head"><h2 id="files-head">The mapping files</h2>
<p class="quiet">Of <code>${dir}</code> on the machine where this console runs.</p>${other}
${[...files.mappings.values()].map(fileOf)}</section>`
}

const fileOf = ({ type, endpoint, track, sendsSubmissionId, fields }: Mapping) => html`<h3>${type}</h3>
${factList([
  ['becomes', html`<code>POST ${resources[endpoint].path}</code>`],
  ['followed', track ? 'until the service has finished it' : 'no: done once it is accepted'],
  ['sends our id', sendsSubmissionId ? 'yes' : null],
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

/** What the JSON Schema says of each thing that a file can say. */
function optionsSection(): HtmlSafeString {
  const options = describeOptions()
  const list = (title: string, isOfFile: boolean) => html`<h3>${title}</h3>
<dl>${options
    .filter(({ types }) => (types === null) === isOfFile)
    .map(
      ({ name, description, types }) =>
        html`<div><dt><code>${name}</code></dt><dd>${description}${types === null || types.length >= typesMost ? '' : html` <span class="quiet">(${types.join(', ')})</span>`}</dd></div>\n`,
    )}</dl>`
  return html`<section aria-labelledby="options-head"><details><summary id="options-head">What a mapping file can say</summary>
${list('At its top', true)}${list('Of a field', false)}</details></section>`
}

/** What nearly every type takes need not be said to be of each. */
const typesMost = 7
