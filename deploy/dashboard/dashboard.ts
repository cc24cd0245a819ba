import { layOut } from './layout.ts'
import { link } from './panels.ts'
import { budget } from './rows/budget.ts'
import { now } from './rows/now.ts'
import { person } from './rows/person.ts'
import { runtime } from './rows/runtime.ts'
import { service } from './rows/service.ts'
import { way } from './rows/way.ts'

/** The dashboard for Grafana 10 and later. Its test writes deploy/grafana-dashboard.json from it. */
export const dashboard = {
  uid: 'outboxd',
  title: 'outboxd',
  description: 'What becomes of the records of the outbox, and how the service does against its targets.',
  tags: ['outboxd'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  graphTooltip: 1, // a crosshair through all panels: what else happened then?
  timezone: 'browser',
  time: { from: 'now-6h', to: 'now' },
  refresh: '30s',
  timepicker: {},
  links: [link('Runbook', 'docs/run/runbook.md'), link('The service’s targets', 'docs/run/slo.md')],
  templating: {
    list: [
      {
        name: 'datasource',
        label: 'Prometheus',
        type: 'datasource',
        query: 'prometheus',
        hide: 0,
        refresh: 1,
        regex: '',
        multi: false,
        includeAll: false,
        options: [],
      },
      labelVariable('job', 'Installation', 'label_values(outboxd_build_info, job)'),
      labelVariable('instance', 'Instance', 'label_values(outboxd_build_info{job="$job"}, instance)', {
        multi: true,
        includeAll: true,
        allValue: '.*',
        current: { text: ['All'], value: ['$__all'] },
      }),
    ],
  },
  annotations: {
    list: [
      annotation('Pauses', {
        expr: 'max by (reason) (outboxd_paused{job="$job"}) == 1',
        titleFormat: 'Nobody sends: {{reason}}',
        tagKeys: 'reason',
        iconColor: 'orange',
      }),
      annotation('Alerts', {
        expr: 'max by (alertname, severity) (ALERTS{alertname=~"Outboxd.*",alertstate="firing",job=~"$job|"})',
        titleFormat: '{{alertname}}',
        tagKeys: 'severity',
        iconColor: 'red',
      }),
    ],
  },
  panels: layOut([now, service, budget, way, person, runtime]),
}

/** A choice above the panels among the values of a label. */
function labelVariable(name: string, label: string, query: string, more: object = {}) {
  return {
    name,
    label,
    type: 'query',
    datasource: { type: 'prometheus', uid: '${datasource}' },
    query,
    hide: 0,
    refresh: 2, // with the time shown
    regex: '',
    sort: 1,
    multi: false,
    includeAll: false,
    options: [],
    ...more,
  }
}

/** Marks on all panels while the query has a value. */
function annotation(name: string, marks: { expr: string; titleFormat: string; tagKeys: string; iconColor: string }) {
  return {
    name,
    datasource: { type: 'prometheus', uid: '${datasource}' },
    enable: true,
    hide: false,
    step: '15s',
    textFormat: '',
    useValueForTime: false,
    ...marks,
  }
}
