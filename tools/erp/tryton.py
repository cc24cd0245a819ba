"""Uses Tryton from Debian's packages by its own client library, as users do. Prints JSON, one value per line.

  tryton.py CONF setup CUSTOMERS            company, accounts, articles, customers
  tryton.py CONF measure PAIRS              milliseconds of confirmations with the triggers of change capture and without, in pairs
  tryton.py CONF sell SEED SALES            sales that are confirmed, changed, confirmed again, cancelled
  tryton.py CONF report                     what Tryton says of all confirmed sales
"""
import datetime
import json
import os
import random
import sys
import time
import traceback
from decimal import Decimal

import psycopg2
from proteus import Model, Wizard, config as proteus_config
from trytond.config import config as trytond_config

ARTICLES = 12


def say(value):
    print(json.dumps(value, default=str), flush=True)


def connect(conf):
    trytond_config.update_etc(conf)
    database = trytond_config.get('database', 'uri') + 'tryton'
    config = proteus_config.set_trytond(database, config_file=conf)
    erp = psycopg2.connect(database)
    erp.autocommit = True
    return config, erp.cursor()


def set_up(customers):
    os.environ.setdefault('DB_NAME', 'tryton')  # these helpers come with tests that ask for it
    from trytond.modules.account.tests.tools import create_chart, create_fiscalyear, get_accounts
    from trytond.modules.account_invoice.tests.tools import set_fiscalyear_invoice_sequences
    from trytond.modules.company.tests.tools import create_company, get_company
    currency = Model.get('currency.currency')(name='Euro', symbol='€', code='EUR', digits=2)
    currency.rates.new(date=datetime.date(2000, 1, 1), rate=Decimal(1))
    currency.save()
    create_company(currency=currency)
    company = get_company()
    set_fiscalyear_invoice_sequences(create_fiscalyear(company)).click('create_period')
    create_chart(company)
    category = Model.get('product.category')(name='Goods', accounting=True)
    category.account_revenue = get_accounts(company)['revenue']
    category.save()
    unit, = Model.get('product.uom').find([('name', '=', 'Unit')])
    for n in range(ARTICLES):
        template = Model.get('product.template')(name=f'Article {n}', default_uom=unit, type='service', salable=True)
        template.list_price = Decimal(f'{n * 7 + 3}.{n * 13 % 100:02}')
        template.account_category = category
        template.save()
        product, = template.products
        product.suffix_code = f'A{n:03}'
        product.save()
    Party = Model.get('party.party')
    Party.save([Party(name=f'Customer {n}', code=f'C{n:04}') for n in range(customers)])
    term = Model.get('account.invoice.payment_term')(name='Now')
    term.lines.new(type='remainder')
    term.save()


class Shop:
    """The shop of one process."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.made = 0
        self.customers = [each for each in Model.get('party.party').find([]) if each.name.startswith('Customer')]
        self.articles = Model.get('product.product').find([])
        self.term, = Model.get('account.invoice.payment_term').find([])

    def fill(self, sale, lines):
        for n in range(lines):
            self.made += 1
            line = sale.lines.new()
            line.product = self.random.choice(self.articles)
            line.quantity = float(self.random.randint(1, 20))
            line.unit_price = Decimal(self.random.randint(1, 99999)) / 100
            # Tells the versions of a sale apart, whatever their lines are.
            line.description = f'{self.seed}-{self.made}'

    def draft(self):
        sale = Model.get('sale.sale')()
        sale.party = self.random.choice(self.customers)
        sale.payment_term = self.term
        sale.invoice_method = 'manual'
        sale.shipment_method = 'manual'
        self.fill(sale, self.random.randint(1, 8))
        sale.save()
        return sale


def confirm(sale):
    sale.click('quote')
    start = time.perf_counter()
    sale.click('confirm')
    return time.perf_counter() - start


def version_of(sale):
    """A confirmed sale as Tryton's client sees it."""
    sale.reload()
    return {
        'sale': sale.id,
        'number': sale.number,
        'date': sale.sale_date,
        'customer': sale.party.code,
        'total': sale.total_amount,
        'lines': [{
            'article': line.product.code,
            'description': line.description,
            'quantity': str(Decimal(str(line.quantity)).normalize().__format__('f')),
            'price': line.unit_price,
            'amount': line.amount,
        } for line in sale.lines],
    }


def measure(erp, pairs):
    """Confirms each sale twice, once with the triggers and once without, in changing order.

    Says the ratio of each pair: lines, customer and moment are the same, so that only the triggers differ.
    """
    shop = Shop(0)
    for n in range(-2, pairs):
        sale = shop.draft()
        ms = {}
        for turn in ('with', 'without') if n % 2 else ('without', 'with'):
            for table in ('sale_sale', 'sale_line'):
                erp.execute(f'alter table {table} {"enable" if turn == "with" else "disable"} trigger user')
            ms[turn] = confirm(sale) * 1000
            sale.click('draft')
        if n >= 0:  # the first pairs warm the caches
            say(ms)
        for table in ('sale_sale', 'sale_line'):
            erp.execute(f'alter table {table} enable trigger user')


def was_sent(erp, sale):
    """Whether the sale was sent as it stands; None if a later change may still take its place."""
    erp.execute("""select count(*) filter (where status in ('new', 'queued', 'sending')), count(*) filter (where status = 'uncertain')
        from outbox where payload ->> 'id' = %s""", (str(sale.id),))
    pending, uncertain = erp.fetchone()
    return False if uncertain else None if pending else True


def wait_until_sent(erp, sale):
    """Whether it is certain that the sale was sent. A record in doubt holds it up until the end."""
    ends = time.monotonic() + 120
    while was_sent(erp, sale) is None:
        if time.monotonic() > ends:
            raise TimeoutError(f'sale {sale.id} was not sent')
        time.sleep(0.05)
    return was_sent(erp, sale) is True


def sell(erp, seed, sales):
    shop = Shop(seed)
    for n in range(sales):
        try:
            sale = shop.draft()
            fate = shop.random.random()
            if fate < 0.08:
                continue  # stays a draft
            confirm(sale)
            rounds = 0 if fate < 0.5 else 1 if fate < 0.85 else 2
            for _ in range(rounds):
                # Sometimes the change comes before the daemon has sent the sale: then it sends the later version only.
                waits = shop.random.random() < 0.7
                say({**version_of(sale), 'certain': waits and wait_until_sent(erp, sale)})
                sale.click('draft')
                if shop.random.random() < 0.5:
                    sale.click('cancel')
                    sale.click('draft')
                shop.fill(sale, 1)
                if len(sale.lines) > 3:
                    sale.lines.remove(sale.lines[0])
                sale.lines[0].quantity += 1
                sale.save()
                confirm(sale)
            if shop.random.random() < 0.1:
                say({**version_of(sale), 'certain': wait_until_sent(erp, sale)})
                sale.click('draft')
                sale.click('cancel')
        except Exception as error:
            say({'error': ''.join(traceback.format_exception_only(type(error), error)).strip()})


def report():
    """Each confirmed sale, and the revenue of each customer by Tryton's own sales report."""
    Sale = Model.get('sale.sale')
    for sale in Sale.find([('state', 'in', ['confirmed', 'processing', 'done'])]):
        say(version_of(sale))
    today = datetime.date.today()
    context = {'from_date': today - datetime.timedelta(days=7), 'to_date': today + datetime.timedelta(days=7)}
    context['company'] = proteus_config.get_config().context.get('company')
    with proteus_config.get_config().set_context(context):
        for row in Model.get('sale.reporting.customer').find([]):
            say({'revenue': row.revenue, 'customer': row.customer.code})


def main(conf, what, *numbers):
    config, erp = connect(conf)
    if what != 'setup':
        config._context = Model.get('res.user').get_preferences(True, {})
    numbers = [int(number) for number in numbers]
    if what == 'setup':
        set_up(*numbers)
    elif what == 'measure':
        measure(erp, *numbers)
    elif what == 'sell':
        sell(erp, *numbers)
    else:
        report()


main(*sys.argv[1:])
