"""Word lists of general English for comparing texts."""


def words_of(listed: str) -> frozenset[str]:
    """Return the words of a list that blanks separate."""
    return frozenset(listed.split())


STOP_WORDS = words_of(
    """a about above after again against all almost along already also although always am
    among an and another any anyone anything are around as at away back be became because
    become been before behind being below between both but by came can cannot come could did
    do does doing done down during each either else ever every everyone everything few for
    from further get gets getting give gives go goes going got had has have having he her here
    hers herself him himself his how however i if in inside into is it its itself just let like
    may me might mine more most much must my myself near neither never no nobody none nor not
    nothing now of off on once one only onto or other others our ours out outside over own per
    perhaps quite rather really same shall she should since so some someone something soon
    still such than that the their theirs them themselves then there these they thing things
    this those though through thus till to together too toward towards under until up upon us
    very was way we well were what whatever when where whether which while who whole whom
    whose why will with within without would yes yet you your yours yourself"""
)

_FORMS = """be: was were been, bear: bore born borne, beat: beaten, begin: began begun,
bite: bit bitten, break: broke broken, bring: brought, build: built, burn: burnt, buy: bought,
catch: caught, choose: chose chosen, die: died dies dead death dying, draw: drew drawn,
drink: drank drunk, drive: drove driven, eat: ate eaten, fall: fell fallen, feel: felt,
fight: fought, find: found, fly: flew flown flies, forget: forgot forgotten, hang: hung hanged,
hear: heard, hide: hid hidden, hold: held, keep: kept, know: knew known, lead: led, leave: left,
lose: lost, make: made, marry: married marriage, meet: met, pay: paid, ride: rode ridden, run: ran,
see: saw seen, seek: sought, sell: sold, send: sent, shoot: shot, sing: sang sung, sit: sat,
sleep: slept, speak: spoke spoken, stand: stood, steal: stole stolen theft, swim: swam swum,
take: took taken, teach: taught, tell: told, think: thought, throw: threw thrown, wear: wore worn,
win: won, write: wrote written, man: men, woman: women, child: children, wife: wives,
knife: knives"""

IRREGULAR = {
    form: base.strip()
    for base, _, forms in (entry.partition(":") for entry in _FORMS.split(","))
    for form in forms.split()
}

_NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty"""
NUMBER_WORDS = {word: str(n) for n, word in enumerate(_NUMBERS.split()) if n} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "hundred": "100",
}
"""Spelled numbers; ``zero`` is left out because it is also a name."""

ABBREVIATIONS = words_of("mr mrs ms dr st prof sr jr lt col gen sgt capt mme mlle no vs rev")
