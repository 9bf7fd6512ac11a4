"""A table of quantities that are the same in another form, and of those that are others."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.judging.mentions import find_mentions
from rageval_spec.judging.quantities import find_quantities


def find_missing(claim: str, source: str) -> tuple[str, ...]:
    return find_mentions([(claim, [source])])[0].missing


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("It costs $20.", "Price (USD): 20, 30, 40"),
        ("It grew 12%.", "Growth in percent: 12"),
        ("It costs 20.", "It costs $20."),
        ("It is 20-25%.", "It is 20% to 25%."),
        ("It had seventeen, then 3.", "It had 17, then three."),
        ("It is 5 below zero.", "It is -5."),
        ("In World Wars I and II it stood.", "World War I and World War II"),
        ("The answer is 3 out of 4.", "three out of four"),
        ("In Q3 it grew by a third.", "In Q3 it grew by one third."),
        ("It grew by 100%.", "It grew by 100 percent."),
        ("Er kam als Dritter am 3. März 2021.", "Er kam als dritter am 3. März 2021."),
        ("The room is 20 m².", "Der Raum hat 20 m²."),
        ("It opens between 9 and 11 am.", "It opens between 9 am and 11 am."),
        ("It is open 9-5.", "It is open 9 to 5."),
        ("Call 555-0199.", "Call 555-0199."),
        ("It is at 192.168.0.1.", "It is at 192.168.0.1."),
        ("It was 1:30:05.", "It was 1:30:05."),
        ("It is 10^6.", "It is 10^6."),
        ("It is 1e-5.", "It is 1e-5."),
        ("He is 45 years old.", "He is aged 45."),
        ("It lasted a decade.", "It lasted ten years."),
        ("It lasted ten years.", "It lasted a decade."),
        ("It has 5 feet.", "It has five foot."),
        ("It is on the 5th floor.", "It is on the fifth floor."),
        ("It costs .5 dollars.", "It costs 0.5 dollars."),
        ("It opens at 9 am.", "It opens at 9:00."),
        ("It opens at 9 a.m. daily.", "It opens at 9:00."),
        ("It closes at 17:00.", "It closes at 5 pm."),
        ("It closes at 5:30 PM.", "It closes at 17:30."),
        ("It closes at 17 Uhr.", "Es schließt um 17:00."),
        ("It lasted 6 years.", "It lasted six years."),
        ("It lasted six years.", "It lasted 6 years."),
        ("It was fought in World War 2.", "It was fought in World War II."),
        ("It was fought in World War II.", "It was fought in World War 2."),
        ("It was fought in World War II.", "It was fought in the Second World War."),
        ("The reign of Henry VIII was long.", "Henry VIII reigned long."),
        ("It has $1,200,000.", "It has $1.2 million."),
        ("It has 1.2 million.", "It has 1,200,000."),
        ("It has $1.2M.", "It has 1.2 million dollars."),
        ("It has EUR 20.", "It has €20."),
        ("It has 20 euros.", "It has €20."),
        ("It has US$20.", "It has $20."),
        ("It has 20 dollars.", "It has $20."),
        ("It rose 12,5 %.", "It rose 12.5%."),
        ("It rose 12.5 percent.", "It rose 12,5 Prozent."),
        ("Half of the users stay.", "50% of the users stay."),
        ("50% of the users stay.", "Half of the users stay."),
        ("Three quarters of the users stay.", "75 % of the users stay."),
        ("Two thirds of the users stay.", "2/3 of the users stay."),
        ("67% of the users stay.", "Two thirds of the users stay."),
        ("A third of the users stay.", "One third of the users stay."),
        ("Ein Drittel der Nutzer bleibt.", "1/3 der Nutzer bleibt."),
        ("Die Hälfte der Nutzer bleibt.", "50 % der Nutzer bleiben."),
        ("It takes two weeks.", "It takes 14 days."),
        ("It takes 14 days.", "It takes two weeks."),
        ("It takes a 14-day trial.", "It takes 14 days."),
        ("It takes 60 minutes.", "It takes one hour."),
        ("It takes 1 hour.", "It takes an hour."),
        ("It takes half an hour.", "It takes 30 minutes."),
        ("It takes 1.5 hours.", "It takes one and a half hours."),
        ("It takes 90 minutes.", "It takes 1.5 hours."),
        ("It takes 2½ hours.", "It takes two and a half hours."),
        ("It takes 12 months.", "It takes a year."),
        ("It takes 14 business days.", "It takes 14 days."),
        ("Die Frist beträgt zwei Wochen.", "Die Frist beträgt 2 Wochen."),
        ("Die Frist beträgt 14 Tage.", "Die Frist beträgt vierzehn Tage."),
        ("Die Frist beträgt einundzwanzig Tage.", "Die Frist beträgt 21 Tage."),
        ("Das sind 205 Leute.", "Das sind zweihundertfünf Leute."),
        ("Es dauert anderthalb Stunden.", "Es dauert 1,5 Stunden."),
        ("Es kostet 3 Mio. Euro.", "Es kostet 3.000.000 Euro."),
        ("Es kostet 2 Milliarden Euro.", "Es kostet 2.000.000.000 €."),
        ("It is 10 to 14 days.", "It is 10–14 days."),
        ("It is 10 days.", "It is 10 to 14 days."),
        ("It costs €25.", "It costs €20–25."),
        ("It weighs 1,000 grams.", "It weighs 1 kg."),
        ("It is 1.5 km long.", "It is 1,500 metres long."),
        ("It falls to minus 5 degrees.", "It falls to -5 degrees."),
        ("It falls to −5 °C.", "It falls to -5 °C."),
        ("It is 5 degrees below zero.", "It is -5 degrees."),
        ("It changed by -5%.", "It fell by 5%."),
        ("It fell by 5%.", "The change was -5%."),
        ("It is in version 2.1.", "It is in v2.1."),
        ("It is in release 2.1.3.", "It is in version 2.1.3."),
        ("It needs Python 3.10.", "Python 3.10 is needed."),
        ("It needs two GPUs.", "It needs 2 GPUs."),
        ("In the third quarter it grew.", "In the 3rd quarter it grew."),
        ("It won 2nd place.", "It won second place."),
        ("It has a dozen eggs.", "It has 12 eggs."),
        ("It has one hundred users.", "It has 100 users."),
        ("It has twenty-one users.", "It has 21 users."),
        ("It has 5k users.", "It has 5,000 users."),
        ("It costs $3.10.", "It costs $3.1."),
        ("It is 0,5 %.", "It is 0.5 percent."),
        ("It opens at noon.", "It opens at 12:00."),
        ("It costs 20 EUR.", "It costs 20,00 €."),
        ("It has 1'000 seats.", "It has 1,000 seats."),
        ("It is 007.", "It is 7."),
        ("It holds 4 GB.", "It holds four gigabytes."),
        ("It costs £5.", "It costs five pounds."),
        ("It costs 50 cents.", "It costs $0.50."),
        ("It grew in the 1990s.", "It grew in the 1990s."),
        ("GPT-4 answers.", "GPT-4 answers."),
        ("It covers pages 10-15.", "It covers pages 10 to 15."),
        ("It is 30 - 50.", "It is 30 to 50."),
        ("It grew 90 percent.", "It grew 90 per cent."),
        ("Risk is cut by a third by drugs.", "Risk is cut by one third."),
        ("Call (555) 10-20.", "Call (555) 10-20."),
        ("It was 9-1 then.", "It was 9 - 1 then."),
        ("The fee is 3 €/month.", "The fee is €3 per month."),
        ("It costs CHF 5.", "It costs 5 Franken."),
        ("It rose 5 percentage points.", "It rose 5 percentage points."),
        ("We sold 3 dozen.", "We sold 36."),
        ("Es sind über 1.000 Nutzer.", "Es sind über tausend Nutzer."),
        ("It is 3rd.", "It is third."),
        ("It has 1 million users.", "It has a million users."),
        ("It has a million users.", "It has 1,000,000 users."),
        ("It takes 24 hours.", "It takes one day."),
        ("It takes a week.", "It takes 7 days."),
        ("Frist: 30 Tage.", "Die Frist beträgt dreißig Tage."),
        ("It is 3/4 full.", "It is three quarters full."),
        ("It is 75% full.", "It is three-quarters full."),
        ("There are two: Ann and Bob.", "There are 2: Ann and Bob."),
        ("It is 6 ft tall.", "It is six feet tall."),
        ("Er ist 1,80 m groß.", "Er ist 1.80 m groß."),
        ("It costs $5 million.", "It costs 5 million US dollars."),
        ("It costs $5 billion.", "It costs USD 5bn."),
        ("The temperature is 20°C.", "The temperature is 20 degrees Celsius."),
        ("Louis XIV reigned.", "Louis 14 reigned."),
        ("It starts at 14:30 Uhr.", "It starts at 2:30 pm."),
        ("Öffnet um 9 Uhr.", "Öffnet um 9:00 Uhr."),
        ("Chapter 3 says so.", "Chapter III says so."),
        ("He paid minus ten euros.", "He paid -10 €."),
        ("The net loss was $5 million.", "Net income was -$5 million."),
        ("It shrank by 3 percent.", "It changed by −3 %."),
        ("It was founded in the 19th century.", "It was founded in the nineteenth century."),
        ("Children aged 5 to 7 may come.", "Children aged five to seven may come."),
        ("It needs v3.", "It needs version 3."),
        ("Apollo 11 landed.", "Apollo 11 landed."),
        ("It has four-wheel drive.", "It has 4-wheel drive."),
        ("The 2 teams won.", "The two teams won."),
        ("24/7 support.", "24/7 support."),
        ("It is €1,50.", "It is 1.50 euros."),
        ("Up to 50 employees.", "up to fifty employees"),
        ("eins und zwei", "1 und 2"),
        ("It has 1.2k stars.", "It has 1,200 stars."),
        ("Half a million people.", "500,000 people"),
        ("He is one hundred and five.", "He is 105."),
        ("1 in 4 users", "One in four users"),
    ],
)
def test_the_same_quantity_is_found_in_another_form(claim: str, source: str) -> None:
    assert find_missing(claim, source) == ()


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The price (USD) is 20 %.", "The price (USD) is 20."),
        ("It takes 20 %.", "It takes 20 people."),
        ("It needs 3.10 in Berlin.", "It needs 3.2."),
        ("It costs $20.", "It costs €20."),
        ("It costs 20 dollars.", "It costs 20 euros."),
        ("It costs 20 GBP.", "It costs 20 EUR."),
        ("It costs £20.", "It costs 20."),
        ("It is in version 2.10.", "It is in version 2.1."),
        ("It is in v2.10.", "It is in v2.1."),
        ("It needs Python 3.1.", "It needs Python 3.10."),
        ("It is 5 degrees.", "It is -5 degrees."),
        ("It is -5 degrees.", "It is 5 degrees."),
        ("It is minus 5 degrees.", "It is 5 degrees."),
        ("It may fall to 5 degrees.", "It may fall to -5 degrees."),
        ("It changed by -5%.", "It rose by 5%."),
        ("It takes 14 hours.", "It takes 14 days."),
        ("It takes 14 hours.", "It takes a 14-day trial."),
        ("It takes 14 business hours.", "It takes 14 business days."),
        ("It takes forty days.", "It takes 14 days."),
        ("It takes forty days.", "It takes fourteen days."),
        ("It takes three weeks.", "It takes 14 days."),
        ("It takes 10 to 14 hours.", "It takes 10 to 14 days."),
        ("It takes half an hour.", "It takes half a day."),
        ("It takes one hour.", "It takes one day."),
        ("Die Frist beträgt drei Wochen.", "Die Frist beträgt zwei Wochen."),
        ("Die Frist beträgt zwei Monate.", "Die Frist beträgt zwei Wochen."),
        ("Die Frist beträgt dreißig Tage.", "Die Frist beträgt dreizehn Tage."),
        ("Zwei Drittel der Nutzer bleiben.", "Ein Drittel der Nutzer bleibt."),
        ("Die Hälfte der Nutzer bleibt.", "Ein Viertel der Nutzer bleibt."),
        ("Two thirds of the users stay.", "Half of the users stay."),
        ("Half of the users stay.", "Two thirds of the users stay."),
        ("Three quarters of the users stay.", "A quarter of the users stay."),
        ("A quarter of the users stay.", "A third of the users stay."),
        ("50% of the users stay.", "50 users stay."),
        ("50 users stay.", "50% of the users stay."),
        ("It was fought in World War I.", "It was fought in World War II."),
        ("It was fought in World War II.", "It was fought in World War I."),
        ("It was fought in World War 1.", "It was fought in World War II, for one year."),
        ("The reign of Henry VII was long.", "Henry VIII reigned long."),
        ("It is in Phase III.", "It is in Phase II."),
        ("It opens at 9 pm.", "It opens at 9 am."),
        ("It opens at 9 pm.", "It opens at 9:00."),
        ("It opens at 9:30.", "It opens at 9:00."),
        ("It opens at 10 Uhr.", "Es öffnet um 9 Uhr."),
        ("It has $1.2 billion.", "It has $1.2 million."),
        ("It has 12 million.", "It has 1.2 million."),
        ("It has $1.2 million.", "It has €1.2 million."),
        ("Es kostet 3 Milliarden Euro.", "Es kostet 3 Millionen Euro."),
        ("It rose 12.5%.", "It rose 12%."),
        ("It rose 125%.", "It rose 12.5%."),
        ("It rose 0.5%.", "It rose 5%."),
        ("It is 5 km away.", "It is 5 miles away."),
        ("It weighs 5 kg.", "It weighs 5 g."),
        ("It weighs 5 lb.", "It weighs 5 kg."),
        ("It is 20 °F.", "It is 20 °C."),
        ("It holds 4 MB.", "It holds 4 GB."),
        ("It drives 50 mph.", "It drives 50 km/h."),
        ("It has three users.", "It has two users."),
        ("It has four rooms.", "It has 3 rooms."),
        ("In the second quarter it grew.", "In the third quarter it grew."),
        ("In the fourth quarter it grew.", "In the third quarter it grew."),
        ("It has 100 users.", "It has 10 users."),
        ("It has two hundred users.", "It has one hundred users."),
        ("It has a dozen eggs.", "It has ten eggs."),
        ("It costs €30.", "It costs €20–25."),
        ("It is section 3.10.", "It is section 3.2."),
        ("It takes 2.5 hours.", "It takes 2½ days."),
        ("It has 1/3 of it.", "It has 1/4 of it."),
        ("It costs 50 cents.", "It costs $50."),
        ("It opens at midnight and 9 am.", "It opens at midnight and 10 am."),
        ("It is 2021.", "It is 2012."),
        ("It takes 5 years.", "It takes 5 months."),
        ("It takes 5-year terms.", "It takes 5-month terms."),
        ("It is 10 ms.", "It is 10 s."),
        ("The fee is 3 $/month.", "The fee is €3 per month."),
        ("It costs CHF 5.", "It costs 5 Euro."),
        ("It takes 23 hours.", "It takes one day."),
        ("Frist: 13 Tage.", "Die Frist beträgt dreißig Tage."),
        ("Louis XVI reigned.", "Louis XIV reigned."),
        ("It starts at 14:30.", "It starts at 4:30 pm."),
        ("Chapter 4 says so.", "Chapter III says so."),
        ("It was founded in the 18th century.", "It was founded in the nineteenth century."),
        ("It needs v3.", "It needs version 2."),
        ("Apollo 13 landed.", "Apollo 11 landed."),
        ("It is 20 degrees Fahrenheit.", "It is 20°C."),
        ("It has six-wheel drive.", "It has 4-wheel drive."),
        ("One in five users", "One in four users"),
        ("It costs 500 euros.", "It costs 500 dollars."),
        ("Er ist 1,90 m groß.", "Er ist 1,80 m groß."),
        ("Es sind hundert Nutzer.", "Es sind tausend Nutzer."),
        ("Net income was -$5 million.", "Net income was $5 million."),
        ("Half a million people.", "Half a billion people."),
        ("It is six feet tall.", "It is six inches tall."),
        ("He paid €1.05.", "He paid €1.50."),
        ("Type II diabetes.", "Type I diabetes."),
        ("Type I diabetes.", "Type II diabetes."),
        ("The twelfth man.", "The eleventh man."),
        ("It is thirty percent.", "It is thirteen percent."),
        ("It is 10 per day.", "It is 12 per day."),
        ("Die dritte Woche.", "Die zweite Woche."),
        ("Es ist die vierte.", "Es ist die dritte."),
        ("Drei Viertel der Leute.", "Zwei Drittel der Leute."),
        ("nineteen ninety", "eighteen ninety"),
    ],
)
def test_another_quantity_is_missing(claim: str, source: str) -> None:
    assert find_missing(claim, source)
    assert not find_missing(claim, claim)


@pytest.mark.parametrize(
    ("claim", "source", "missing"),
    [
        ("It costs $20.", "It costs €20.", "$20"),
        ("It takes 14 business hours.", "It takes 14 business days.", "14 business hours"),
        ("It is minus 5 degrees.", "It is 5 degrees.", "minus 5"),
        ("Es dauert drei Wochen.", "Es dauert zwei Wochen.", "drei Wochen"),
    ],
)
def test_a_missing_quantity_is_named_as_the_text_writes_it(claim: str, source: str, missing: str) -> None:
    assert find_missing(claim, source) == (missing,)


def read_values(text: str) -> set[Decimal]:
    return {value for one in find_quantities(text) for value in one.values}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1000", [1000]),
        ("1,000", [1000]),
        ("1.000", [1, 1000]),
        ("1 000", [1000]),
        ("1\u202f000 and 1'000", [1000]),
        ("1,234,567.89", ["1234567.89"]),
        ("1.234.567,89", ["1234567.89"]),
        ("1,5 or 1.5", ["1.5"]),
        ("$3.5 million", [3_500_000]),
        ("3.5m", ["3.5", 3_500_000]),
        ("5 m", [5, 5_000_000]),
        ("15%, the 12th, 1990s", [15, 12, 1990]),
        ("10:30", [630]),
        ("in 2019 100 people came", [2019, 100]),
        ("version 1.2.3", []),
        ("twenty-one", [21]),
        ("Two hundred and five thousand", [205_000]),
        ("one million two hundred thousand and one", [1_200_001]),
        ("a hundred, a dozen, the second, the thirtieth", [100, 12, 2, 30]),
        ("one two three", [1, 2, 3]),
        ("two and three", [2, 3]),
        ("millions of stones", []),
        ("", []),
    ],
)
def test_numbers_are_read_in_every_form(text: str, values: list[int | str]) -> None:
    assert read_values(text) == {Decimal(value) for value in values}


@given(st.integers(0, 10**12))
def test_a_number_has_its_value_with_and_without_marks(number: int) -> None:
    for text in (f"{number}", f"{number:,}", f"{number:,}".replace(",", " "), f"{number:,}".replace(",", "'")):
        assert read_values(text) == {number}


@given(st.integers(0, 999_999))
def test_a_number_in_words_has_its_value(number: int) -> None:
    assert read_values(write_out(number)) == {number}


SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
""".split()  # noqa: SIM905
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def write_out(number: int) -> str:
    """A number below a million in words: `two hundred and five`."""
    if number < 20:
        return SMALL[number]
    if number < 100:
        return TENS[number // 10] + (f"-{SMALL[number % 10]}" if number % 10 else "")
    unit, word = (100, "hundred") if number < 1000 else (1000, "thousand")
    return f"{write_out(number // unit)} {word}" + (f" and {write_out(number % unit)}" if number % unit else "")


@given(st.text())
def test_any_text_contains_its_own_quantities(text: str) -> None:
    assert find_missing(text, text) == ()
