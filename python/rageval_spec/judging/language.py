"""Tells the language of a text by its script and by frequent words.

A text that could be in several languages has none. This is for comparing groups of answers, so a wrong language does
more harm than none: of 2,380 questions of XQuAD in English and German, none gets a wrong one.

The lists of frequent words hold more languages than a judge is likely to meet, so that a text in Swedish is not taken
for a German one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

_SCRIPTS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "Latin": ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF)),
    "Cyrillic": ((0x400, 0x52F),),
    "Greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Hebrew": ((0x590, 0x5FF),),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F)),
    "Devanagari": ((0x900, 0x97F),),
    "Thai": ((0xE00, 0xE7F),),
    "Kana": ((0x3041, 0x30FF),),
    "Han": ((0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    "Hangul": ((0xAC00, 0xD7AF), (0x1100, 0x11FF)),
}
_ONLY: Mapping[str, str] = {"Greek": "el", "Hebrew": "he", "Thai": "th", "Han": "zh", "Kana": "ja", "Hangul": "ko"}
"""The language of a script, if it has one that nearly all its texts are in."""
_KANA_SHARE = 0.05
"""Japanese has at least this share of kana among its characters; Chinese may quote some."""
_BEGINNING = 2000
"""Characters that are read. More do not make a language clearer."""
_FIRST_LETTERS = 500
"""Characters that show the script."""
_FEWEST = 1.2
"""The least evidence: a word that only one language has counts 1, a word that n languages share 1 / n."""
_LEAD = 2.0
"""How many times the evidence for the second-best language the best needs."""
_COVERAGE = 0.15
"""The least share of words that are frequent ones of the language."""

NAMES: Mapping[str, str] = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The English names of languages by their code."""


def find_language(text: str) -> str | None:
    """The text's language as its code (ISO 639-1); None if it is not clear, as in "Paris, 1911"."""
    text = text[:_BEGINNING]
    script = _find_script(text[:_FIRST_LETTERS])
    if script is None or script in _ONLY:
        return None if script is None else _ONLY[script]
    return _compare_words(text, script)


def _find_script(text: str) -> str | None:
    counts = Counter(script for letter in text if (script := _script_of(letter)) is not None)
    letters = counts.total()
    if counts["Kana"] >= _KANA_SHARE * (counts["Kana"] + counts["Han"]) > 0:
        counts["Kana"] += counts.pop("Han", 0)
    script, most = max(counts.items(), key=lambda item: item[1], default=("", 0))
    return script if script in _SCRIPTS and 2 * most > letters else None


@cache
def _script_of(letter: str) -> str | None:
    code = ord(letter)
    if not letter.isalpha():
        return None
    return next((name for name, spans in _SCRIPTS.items() if any(low <= code <= high for low, high in spans)), "other")


def _compare_words(text: str, script: str) -> str | None:
    words = re.findall(r"[^\W\d_]+(?:[\u0900-\u0903\u093a-\u094f]+[^\W\d_]*)*", text)
    known, letters = _list_languages(script), _list_letters()
    evidence: dict[str, float] = defaultdict(float)
    hits: Counter[str] = Counter()
    for word, count in Counter(words).items():
        languages = known.get(word.lower()) or _find_rare(word, letters)
        for language in languages:
            evidence[language] += count / len(languages)
            hits[language] += count
    best, *others = sorted(evidence, key=lambda language: evidence[language], reverse=True) or [""]
    second = evidence[others[0]] if others else 0.0
    is_clear = evidence[best] >= max(_FEWEST, _LEAD * second) and hits[best] >= _COVERAGE * len(words)
    return best if best and is_clear else None


def _find_rare(word: str, letters: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The languages of a word's rarest letter. Names do not count, as they come from anywhere."""
    if word[0].isupper():
        return ()
    return min((letters[letter] for letter in word if letter in letters), key=len, default=())


@cache
def _list_letters() -> Mapping[str, tuple[str, ...]]:
    return _turn_round(LETTERS)


@cache
def _list_languages(script: str) -> Mapping[str, tuple[str, ...]]:
    return _turn_round({language: dict.fromkeys(words.split()) for language, words in FREQUENT_WORDS[script].items()})


def _turn_round(parts: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    languages: dict[str, list[str]] = defaultdict(list)
    for language, own in parts.items():
        for part in own:
            languages[part].append(language)
    return {part: tuple(of) for part, of in languages.items()}


_LATIN = {
    "en": "the of and to in is was that for with as on are by this it at from be which have has had not or an were "
    "their its they what who when where how why does did do can will would there been after into than these he she his "
    "her you your we our but if then also more most between during about many much",
    "de": "der die das und ist nicht ein eine einer eines einem einen von zu mit für auf im den dem des sich auch als "
    "es an werden wird wurde wurden war waren sind hat haben hatte aus bei nach über durch oder aber wie was wer wann "
    "wo warum welche welcher welches wenn noch nur kann können zum zur vom bis dass diese dieser dieses ihre ihr sein "
    "seine seiner ich sie er wir viele mehr zwischen unter um so in",
    "fr": "le la les des de du et est un une en que qui dans pour pas au aux sur par avec ce cette ces il elle ils "
    "elles sont été a être ont plus ne se son sa ses leur leurs ou où mais comme nous vous je on quel quelle quels "
    "quelles quand comment pourquoi combien d l qu n s c j y aussi fait peut entre après avant était avait même",
    "es": "el la los las de del y en que es un una por con para no se su sus al lo como más pero fue son está están "
    "ha han o este esta estos estas ser entre cuando muy sin sobre también hasta hay donde quién qué cuál cuáles cómo "
    "cuándo dónde cuánto cuántos cuántas tiene era desde todo nos durante fueron le les porque puede yo usted",
    "it": "il lo la i gli le di del della dei delle dello nel nella nei nelle e è un una uno che in per con non si da "
    "dal dalla al alla ai alle sul sulla sono stato stata più come ma anche questo questa questi ha hanno era cosa chi "
    "quando dove quale quali quanto quanti quante perché essere tra fra suo sua loro ci se o l dell all nell",
    "pt": "o a os as de do da dos das em no na nos nas e é um uma que para por com não se ao à pelo pela pelos como "
    "mais mas foi são está estão foram tem têm ser seu sua seus suas ou também até quando quem qual quais onde quanto "
    "quantos quantas entre sobre isso este esta esse essa já muito você ele ela eles às depois era",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er ook als bij door naar uit om dan maar of wordt "
    "worden werd werden was heeft hebben had kan kunnen over tot deze dit die wie wat waar wanneer waarom hoe hoeveel "
    "welke welk ik je jij u hij ze zij we wij hun haar geen nog meer tussen onder tegen na",
    "pl": "i w z na do nie się jest że to o jak co po za od dla ale są był była było były być przez przy ze oraz lub "
    "czy który która które których kto kiedy gdzie dlaczego ile jaki jaka jakie tym tego ten ta te jego jej ich tylko "
    "może można ma mają także już tak bardzo między został została zostały we pod ja",
    "sv": "och att det som en ett är på för med av till den inte har de om var han hon men sig från vi så kan när hur "
    "vad vem varför vilken vilket vilka eller skulle blev också detta dessa under efter mellan hade jag du",
    "da": "og at det som en et er på for med af til den ikke har de om var han hun men sig fra vi så kan når hvor hvad "
    "hvem hvorfor hvilken hvilket eller skulle blev også dette disse under efter mellem havde jeg du blive",
    "no": "og at det som en et er på for med av til den ikke har de om var han hun men seg fra vi så kan når hvor hva "
    "hvem hvorfor hvilken hvilket eller skulle ble også dette disse under etter mellom hadde jeg du å",
    "ro": "și în de la cu pe nu este o un care din ce să a au fost sunt mai pentru prin dar sau ca se al ale lui ei "
    "cine când unde cum câți câte cât după între această acest aceste era avea eu el le cel cea",
    "cs": "a v na je se že s z do to o k i jako za by po pro od ale jsou byl byla bylo být nebo který která které kdo "
    "kdy kde proč jak kolik jaký jaká jaké tím toho ten ta jeho její jejich také již až při ve mezi jsem není",
    "tr": "ve bir bu da de için ile olarak olan ne kadar daha çok gibi var mı mi değil en o ya veya hangi nerede "
    "nasıl neden kim kaç zaman sonra önce olduğu oldu tarafından ama her kendi arasında ben",
    "hu": "a az és egy hogy nem is van volt meg ez ami mint de vagy csak már még el ki mi hol mikor miért hogyan "
    "melyik hány ezt azt után között lett lesz aki amely számára én",
    "fi": "ja on ei se että oli kuin joka mutta tai myös ovat hän he ne sen mikä kuka missä milloin miksi miten "
    "kuinka monta jos niin vain ole olla jälkeen välillä mukaan tämä minä",
    "ca": "el la els les de del i en que és un una per amb no se al com més però va són està han o aquest aquesta "
    "aquests ser entre quan molt sense sobre també fins hi ha on qui què quin quina quins",
    "gl": "o a os as de do da dos das en no na nos nas e é un unha que para por con non se ao á polo pola como máis "
    "mais foi son está ser seu súa ou tamén ata cando quen cal onde entre sobre este esta",
    "hr": "i u je na se da su za od s ne to kao a iz o do koji koja koje što tko gdje kada zašto kako bio bila bilo "
    "biti ili ali nije sam također prema između po",
    "sk": "a v na je sa že s z do to o k i ako za by po pre od ale sú bol bola bolo byť alebo ktorý ktorá ktoré kto "
    "kedy kde prečo koľko aký aká aké jeho jej ich tiež už až pri vo medzi som nie",
    "id": "yang dan di ini itu dengan untuk dari dalam tidak pada adalah oleh akan ke juga atau sebagai bahwa telah "
    "dapat karena ada saya kami mereka apa siapa kapan mana mengapa bagaimana berapa",
    "vi": "và của là có được trong cho không một các những người với đã này để khi từ về như đến ở tại bao nhiêu gì "
    "ai nào đâu vì sao sẽ cũng tôi",
    "la": "et in est non ad ut cum sed quod qui quae a ab ex sunt esse erat hoc si per enim autem etiam nec quam",
    "af": "die van en in is nie het dat wat sy met vir op te aan as om hy ook was deur maar uit hulle ons kan word "
    "wie waar wanneer hoekom hoe",
    "et": "ja on ei et see oli kui mis ta aga või ka oma kes kus millal miks kuidas mitu pärast vahel seda nad",
    "lt": "ir yra ne kad tai iš į su buvo kaip bet ar taip pat jo jos jų kas kur kada kodėl kiek po tarp apie",
    "lv": "un ir ne ka tas no uz ar bija kā bet vai arī viņa viņš kas kur kad kāpēc cik pēc starp par",
    "is": "og að er ekki í á sem til við var með fyrir um það hann hún en af frá hvað hver hvar hvenær hvers hvernig "
    "þetta",
    "sq": "dhe të në e i një për me nga është që u si nuk kjo ky ka janë ishte kur ku kush çfarë pse sa por",
    "eu": "eta da ez bat du dira zen izan ere baina hau hori zer nor non noiz zergatik nola zuen",
    "tl": "ang ng sa na mga ay at si ni ito para hindi kung may siya nila ano sino saan kailan bakit paano",
    "sl": "in je v na se da so za od z s ne to kot pa iz o do ki kaj kdo kje kdaj zakaj kako bil bila bilo biti ali "
    "ni tudi med po",
}
_CYRILLIC = {
    "ru": "и в не на что с по это как к из у за от для а но или о был была было были он она они его её их мы вы я так "
    "то же бы который которая которые кто когда где почему сколько какой какая какие во со при также после между чем "
    "является всех чтобы если есть нет эта эти этот этого этой можно только уже еще",
    "uk": "і в не на що з у це як до та за від для а але або про був була було були він вона вони його її їх ми ви я "
    "так який яка які хто коли де чому скільки також після між чи є під із",
    "bg": "и в не на че с по това как към от за а но или е са беше бил била били той тя те го му ги ние вие аз който "
    "която които кой кога къде защо колко какъв също след между се да ли",
    "sr": "и у не на да са по то како к од за а али или је су био била било били он она они га их ми ви ја који која "
    "које ко када где зашто колико такође после између се",
    "mk": "и во не на дека со по тоа како кон од за а но или е се беше бил била биле тој таа тие го му ги ние вие јас "
    "кој која кои кога каде зошто колку исто меѓу",
    "be": "і ў не на што з у гэта як да за ад для а але або пра быў была было былі ён яна яны яго яе іх мы вы я так "
    "які якая якія хто калі дзе чаму колькі таксама пасля паміж ці ёсць",
}
_ARABIC = {
    "ar": "في من على إلى أن عن مع هذا هذه التي الذي ما لا هو هي كان كانت أو ثم قد لم بين بعد قبل كل كم متى أين من كيف "
    "لماذا ماذا هل ذلك حيث عند غير أي إن و كما",
    "fa": "در از به که این است را با برای آن تا یک هم بود شد و می نمی یا اما چه کی کجا چرا چگونه چند هر بر آنها شده "
    "خود دارد کرد باشد",
    "ur": "میں کے کی ہے کا سے کو اور نے پر یہ ہیں کہ تھا تھی کر ہو اس ایک نہیں کیا کون کب کہاں کیوں کیسے کتنے بھی تھے",
}
_DEVANAGARI = {
    "hi": "के है में की से का को और पर यह हैं कि ने था थी थे एक नहीं इस हो कर गया भी तो जो क्या कौन कब कहाँ कहां "
    "क्यों कैसे कितने कितनी लिए साथ बाद द्वारा",
    "mr": "आहे आणि च्या या व ते हा ही हे नाही होते होता होती काय कोण केव्हा कुठे का कसे किती एक मध्ये साठी आहेत पण तर",
    "ne": "छ र को मा हो छन् यो त्यो ले लाई बाट पनि थियो भएको के कहिले कहाँ किन कसरी कति एक हुन् तर गरेको",
}

FREQUENT_WORDS: Mapping[str, Mapping[str, str]] = {
    "Latin": _LATIN,
    "Cyrillic": _CYRILLIC,
    "Arabic": _ARABIC,
    "Devanagari": _DEVANAGARI,
}
"""By script and language (ISO 639-1), words parted by spaces."""

LETTERS: Mapping[str, str] = {
    "de": "ß", "es": "ñ", "gl": "ñ", "pt": "ãõ", "pl": "łąęśźżń", "cs": "ěřů", "ro": "țșăţ", "tr": "ğış", "hu": "őű",
    "vi": "ạảấầẩẫậắằặẹẻẽếềểệịọỏốồổỗộớờởợụủứừửữựơưđ", "fr": "œ", "da": "æø", "no": "æø", "is": "þð", "lv": "āēīūķļņ",
    "lt": "ėųį", "sk": "ľĺŕ", "ru": "ыэё", "be": "ўыэё", "uk": "їєґ", "sr": "љњђћј", "mk": "љњѓќј", "bg": "ъ",
    "ca": "ŀ", "hi": "ड़ढ़", "fa": "پچگژ", "ur": "ٹڈڑںے",
}  # fmt: skip
"""Letters that few languages have; a word that has one counts like a frequent word of theirs."""
