"""The phrases of refusals by language, and patterns that tell a refusal from a mention of one.

A phrase is text, which is folded before the search. `*` stands for up to five words of the same clause (in scripts
without white space, up to twelve characters), and a leading `^` for the beginning of a clause. Precision comes before
recall: a phrase that plain answers contain too ("no information is shared") needs the words that tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

REFUSAL_PHRASES: Mapping[str, tuple[str, ...]] = {
    "en": (
        "i don't know", "i do not know", "i don't have enough", "i do not have enough", "i'm not sure",
        "i am not sure", "i cannot answer", "i can't answer", "unable to answer", "i cannot find", "i can't find",
        "i could not find", "i couldn't find", "i cannot determine", "i can't determine", "unable to determine",
        "cannot be answered", "can't be answered", "cannot be determined", "can't be determined",
        "there is no information", "there is no relevant information", "no information about", "no information on",
        "no information regarding", "no relevant information", "not enough information", "insufficient information",
        "is not present in any of the", "are not present in any of the", "is not mentioned in",
        "are not mentioned in", "not provided in the", "is not specified in the", "not possible to answer",
        "unanswerable", "i don't have that information", "i do not have that information",
        "i don't have this information", "i do not have this information", "i don't have any information",
        "i do not have any information", "i don't have information", "i do not have information",
        "^not mentioned in the",
    ),
    "de": (
        "ich weiß es * nicht", "ich weiß nicht", "weiß ich * nicht", "ich weiß darauf keine antwort",
        "ist mir * nicht bekannt", "sind mir * nicht bekannt", "bin mir * nicht sicher", "bin ich mir * nicht sicher",
        "^keine ahnung", "ich habe keine ahnung", "habe ich keine ahnung", "ich kann die frage * nicht",
        "ich kann diese frage * nicht", "kann ich * nicht beantworten", "ich kann * nicht beantworten",
        "kann ich * nicht sagen", "ich kann * nicht sagen", "kann ich * nichts sagen", "ich kann * nichts sagen",
        "kann ich * keine auskunft geben", "ich kann * keine auskunft geben", "kann * nicht beantwortet werden",
        "können * nicht beantwortet werden", "lässt sich * nicht beantworten", "lassen sich * nicht beantworten",
        "lässt sich * nicht bestimmen", "lässt sich * nicht entnehmen", "ist * nicht zu entnehmen",
        "ich habe * keine information", "habe ich * keine information", "liegen * keine information",
        "ich habe * keine antwort", "habe ich * keine antwort", "ich kann * keine antwort",
        "kann ich * keine antwort", "ich konnte * nicht finden", "ich konnte * keine information",
        "konnte ich * keine information", "konnte ich * nicht finden", "keine informationen zu",
        "keine informationen über", "keine informationen dazu", "keine informationen darüber",
        "keine informationen hierzu", "keine angaben", "nicht genügend informationen", "nicht genug informationen",
        "nicht ausreichend informationen", "keine ausreichenden informationen", "geht * nicht hervor",
        "wird * nicht erwähnt", "werden * nicht erwähnt", "enthält * keine information",
        "enthalten * keine information", "steht * nichts im text", "steht * nichts in den",
    ),
    "fr": (
        "je ne sais * pas", "je ne le sais pas", "je l'ignore", "je n'en sais rien", "je n'en ai aucune idée",
        "je n'ai aucune idée", "je ne peux * pas * répondre", "je ne suis * pas en mesure",
        "je ne suis * pas capable de répondre", "je ne suis pas sûr", "je ne suis pas certain",
        "je n'ai pas d'information", "je n'ai pas cette information", "je n'ai pas assez d'information",
        "je n'ai aucune information", "je n'ai pas trouvé", "je n'ai trouvé aucune", "je ne trouve pas",
        "je n'ai pas la réponse", "je n'ai pas de réponse", "je ne dispose pas", "je ne dispose d'aucune",
        "il m'est impossible de répondre", "impossible de répondre à", "il n'est pas possible de répondre",
        "aucune information sur", "aucune information concernant", "aucune information à ce sujet",
        "aucune information à ce propos", "aucune information relative", "aucune information pertinente",
        "aucune information disponible", "aucune information n'est disponible", "aucune information dans",
        "il n'y a aucune information", "il n'y a pas d'information", "pas d'information sur",
        "pas assez d'information", "informations insuffisantes", "contient aucune information",
        "contiennent aucune information", "fournit aucune information", "fournissent aucune information",
        "donne aucune information", "donnent aucune information", "n'est * pas mentionné", "ne sont * pas mentionné",
        "n'est pas précisé", "ne mentionne * pas", "ne mentionnent * pas", "ne précise * pas", "ne précisent * pas",
        "ne contient pas d'information", "ne contiennent pas d'information", "ne permet * pas de répondre",
        "ne permettent * pas de répondre", "^aucune idée", "je ne connais pas la réponse", "je ne saurais répondre",
        "je ne saurais le dire",
    ),
    "es": (
        "no lo sé", "no sé la respuesta", "^no sé", "yo no sé", "lo desconozco", "^desconozco", "no tengo ni idea",
        "no tengo * información", "no tengo la respuesta", "no tengo respuesta", "no tengo suficiente",
        "no dispongo de", "no cuento con * información", "no puedo * responder", "no puedo contestar",
        "no puedo determinar", "no puedo encontrar", "no me es posible responder", "no se puede responder",
        "no se puede determinar", "no es posible responder", "no es posible determinar",
        "no he encontrado * información", "no he encontrado * respuesta", "no he podido encontrar",
        "no encuentro * información", "no encuentro la respuesta", "no encontré * información", "no estoy seguro",
        "no estoy segura", "no hay información", "no hay * información sobre", "no hay suficiente información",
        "no existe información", "información insuficiente", "no se menciona", "no se mencionan", "no mencionan",
        "no contiene * información", "no contienen * información", "no proporciona * información",
        "no proporcionan * información", "no se especifica", "contexto no menciona", "texto no menciona",
        "documento no menciona",
    ),
    "it": (
        "non lo so", "^non so", "io non so", "non saprei", "non conosco la risposta", "non ne ho idea",
        "non posso * rispondere", "non sono in grado di", "non è possibile rispondere", "non è possibile determinare",
        "non è possibile stabilire", "non ho * informazioni", "non dispongo di", "non ho la risposta",
        "non ho una risposta", "non ho trovato * informazion", "non ho trovato * risposta", "non riesco a trovare",
        "non riesco a rispondere", "non sono sicuro", "non sono sicura", "non ne sono a conoscenza",
        "nessuna informazione su", "nessuna informazione al riguardo", "nessuna informazione in merito",
        "nessuna informazione disponibile", "nessuna informazione riguard", "nessuna informazione rilevante",
        "nessuna informazione nel", "non ci sono * informazioni", "non c'è * informazion",
        "informazioni insufficienti", "non è * menzionat", "non sono menzionat", "non viene menzionat",
        "non viene specificat", "non è specificat", "non contiene * informazioni", "non contengono * informazioni",
        "non fornisce * informazion", "non forniscono * informazioni", "contesto non menziona", "testo non menziona",
        "documento non menziona",
    ),
    "pt": (
        "não sei", "não faço ideia", "^desconheço", "não tenho * informaç", "não tenho a resposta",
        "não tenho uma resposta", "não tenho certeza", "não tenho a certeza", "não disponho de",
        "não posso * responder", "não consigo responder", "não consigo encontrar", "não consigo determinar",
        "não encontrei * informaç", "não encontrei * resposta", "não foi possível encontrar",
        "não é possível responder", "não é possível determinar", "não é possível saber", "nenhuma informação sobre",
        "nenhuma informação a respeito", "nenhuma informação disponível", "nenhuma informação relevante",
        "não há * informaç", "não existem informaç", "informações insuficientes", "não é mencionad",
        "não são mencionad", "não menciona", "não contém * informaç", "não contêm * informaç",
        "não fornece * informaç", "não fornecem * informaç", "não é especificad",
    ),
    "nl": (
        "ik weet het * niet", "ik weet niet", "weet ik * niet", "ik weet * geen antwoord", "^geen idee",
        "ik heb geen idee", "ik ben er niet zeker van", "ik ben niet zeker", "ik kan deze vraag * niet",
        "ik kan de vraag * niet", "ik kan * niet beantwoorden", "kan ik * niet beantwoorden",
        "kan ik * geen antwoord", "ik kan * geen antwoord", "kan * niet worden beantwoord",
        "kan * niet beantwoord worden", "ik kan * niet vinden", "ik kon * niet vinden", "kon ik * niet vinden",
        "ik heb * geen informatie", "heb ik * geen informatie", "er is * geen informatie", "geen informatie over",
        "geen informatie beschikbaar", "geen informatie gevonden", "geen informatie hierover",
        "geen informatie daarover", "niet genoeg informatie", "niet voldoende informatie", "onvoldoende informatie",
        "bevat * geen informatie", "bevatten * geen informatie", "niet vermeld", "wordt * niet genoemd",
        "worden * niet genoemd", "blijkt * niet uit", "niet te beantwoorden", "staat * niet in de tekst",
        "staat * niet in de context", "staat * niet in de documenten",
    ),
    "pl": (
        "nie wiem", "nie znam odpowiedzi", "nie mam pojęcia", "nie jestem pewien", "nie jestem pewna",
        "nie mogę * odpowiedzieć", "nie mogę udzielić * odpowiedzi", "nie mogę znaleźć",
        "nie potrafię * odpowiedzieć", "nie jestem w stanie", "nie mam * informacji", "nie posiadam * informacji",
        "nie dysponuję", "nie znalazłem", "nie znalazłam", "nie znaleziono * informacji", "nie można * odpowiedzieć",
        "nie da się * odpowiedzieć", "nie można * określić", "nie można * ustalić", "brak informacji na temat",
        "brak informacji na ten temat", "brak takich informacji", "brak informacji o", "brak informacji w",
        "brak wystarczających informacji", "za mało informacji", "niewystarczające informacje", "nie ma * informacji",
        "nie zawiera * informacji", "nie zawierają * informacji", "nie wspomina", "nie wspomniano",
    ),
    "sv": ("jag vet inte", "jag kan inte svara", "ingen information", "otillräcklig information"),
    "ru": (
        "я * не знаю", "^не знаю", "мне * не известно", "мне * неизвестно", "я * не уверен", "не могу * ответить",
        "не могу дать * ответ", "не могу сказать", "не могу найти", "не могу определить", "не смог найти",
        "не смогла найти", "я не нашел", "я не нашёл", "я не нашла", "не удалось найти", "у меня нет * информации",
        "у меня нет * данных", "у меня нет * сведений", "у меня нет ответа", "я не располагаю", "нет * информации",
        "нет данных о", "недостаточно * информации", "недостаточно * данных", "информации недостаточно",
        "не содержит * информации", "не содержат * информации", "не содержится * информаци", "не упоминается",
        "не упоминаются", "в тексте не указан", "в контексте не указан", "в документах не указан",
        "в документе не указан", "в источниках не указан", "невозможно * ответить", "невозможно * определить",
        "^понятия не имею", "я понятия не имею",
    ),
    "tr": ("bilmiyorum", "cevap veremem", "yanıtlayamam", "yeterli bilgi yok", "bilgi bulunmamaktadır"),
    "zh": (
        "我不知道", "我也不知道", "我并不知道", "我並不知道", "^不知道", "不知道答案", "我不清楚", "我不太清楚",
        "^不清楚", "我不确定", "我不確定", "^不确定", "^不確定", "无法回答", "無法回答", "不能回答", "没法回答",
        "没办法回答", "沒辦法回答", "回答不了", "我无法确定", "我無法確定", "^无法确定", "^無法確定", "根据*无法确定",
        "根據*無法確定", "我无法得知", "^无法得知", "根据*无法得知", "无法提供*答案", "无法提供*信息", "信息不足",
        "資訊不足", "资料不足", "資料不足", "没有相关信息", "沒有相關資訊", "没有相关资料", "沒有相關資料",
        "没有足够的信息", "没有足够信息", "沒有足夠的資訊", "没有找到*信息", "没有找到*答案", "沒有找到*資訊",
        "找不到*信息", "找不到*答案", "未找到相关", "没有关于*的信息", "沒有關於*的資訊", "没有包含*信息",
        "不包含*信息", "未包含*信息", "没有提供*信息", "未提供*信息", "未提及", "未提到", "没有提到", "沒有提到",
        "没有提及", "沒有提及", "没有这方面的信息", "沒有這方面的資訊",
    ),
    "ja": (
        "わかりません", "分かりません", "わかりかねます", "分かりかねます", "わからないです", "分からないです",
        "存じません", "存じ上げません", "知りません", "答えられません", "お答えできません", "回答できません",
        "答えることができません", "答えることはできません", "お答えすることができません",
        "お答えすることはできません", "回答することができません", "回答することはできません", "判断できません",
        "特定できません", "情報がありません", "情報はありません", "情報が見つかりません", "情報は見つかりません",
        "見つかりませんでした", "見つけられませんでした", "情報が不足", "情報が不十分", "情報が含まれていません",
        "情報は含まれていません", "記載されていません", "記載がありません", "記載はありません", "言及されていません",
        "言及がありません", "言及はありません", "書かれていません",
        "情報を持っていません", "情報は持っていません", "情報を持ち合わせておりません", "情報は持ち合わせておりません",
    ),
    "ko": ("모르겠습니다", "알 수 없습니다", "답변할 수 없", "대답할 수 없", "정보가 없습니다", "정보가 부족"),
    "ar": ("لا أعرف", "لا أعلم", "لا يمكنني الإجابة", "لا توجد معلومات", "معلومات غير كافية"),
    "hi": ("मुझे नहीं पता", "मैं नहीं जानता", "उत्तर नहीं दे सकता", "कोई जानकारी नहीं", "पर्याप्त जानकारी नहीं"),
}  # fmt: skip
"""The phrases of refusals by language. An answer with one of them can be a refusal."""

SOFTENERS = (
    "leider", "bedauerlicherweise", "malheureusement", "hélas", "lamentablemente", "desafortunadamente",
    "por desgracia", "purtroppo", "sfortunatamente", "infelizmente", "lamentavelmente", "helaas",
    "jammer genoeg", "niestety", "к сожалению", "увы",
)  # fmt: skip
"""Words in a refusal that do not change its meaning: "Das weiß ich leider nicht"."""

TURN = re.compile(
    r"[;:—–]|,?\s\b(?:but|however|though|although|aber|jedoch|doch|allerdings|mais|cependant|toutefois|pourtant|pero"
    r"|sin embargo|no obstante|aunque|ma|però|tuttavia|mas|porém|contudo|no entanto|maar|echter|ale|jednak|lecz|men)\b"
    r"|\band(?= i\b)|,?\s\b(?:но|однако|хотя|ama|fakat)\b"
    r""
    r""
    r"|但|不过|不過|可是|然而|しかし|ただし|けれど|が、|하지만|لكن|लेकिन"
)
"""Words at which a sentence can turn from a refusal to an answer, or back."""

MANNERS = re.compile(
    r"(?:(?:i(?:'m| am) |we(?:'re| are) )?(?:very |so |really |truly )?(?:sorry|afraid)(?: (?:for|about) [^,]*)?"
    r"|unfortunately|i apologi[sz]e[^,]*|my apologies[^,]*|please .*|let me know .*|feel free .*|thank you.*|thanks.*"
    r"|(?:es )?tut mir (?:sehr )?leid|leider|entschuldigung|verzeihung|bitte .*|(?:je suis )?(?:vraiment )?désolée?"
    r"|malheureusement|pardon|lo siento(?: mucho)?|lamentablemente|perdón|mi dispiace|purtroppo|scusa|scusi"
    r"|desculpe|sinto muito|lamento|infelizmente|helaas|het spijt me|sorry|niestety|przykro mi|przepraszam"
    r"|tyvärr|к сожалению|извините|простите|üzgünüm|maalesef"
    r"|(?:非常|真的)?很?抱歉|对不起|對不起|不好意思|(?:大変)?申し訳(?:ありません|ございません)|すみません|ごめんなさい"
    r"|죄송합니다|죄송하지만|عذرا|क्षमा करें)"
)
"""Other clauses of refusals, which claim nothing."""

REPORTED_IN_ENGLISH = re.compile(
    r"(?:(?<!\bi )(?<!\bi'd )(?<!\bto )(?<!\bmust )(?<!\bonly )(?<!\bwould )\b"
    r"(?:say|says|said|saying|replies|replied|answers|answered|responds|responded|writes|wrote|thinks?|thought"
    r"|tells? \w+|told \w+)"
    r"|(?<!\bwhich )(?<!\bthis )(?<!\bthat )\bmeans)(?: that)?[:,]? [\"'“„«]?$"
)
"""What precedes a phrase that is quoted or explained, not said: "users who say I don't know"."""

_SAID = (
    "sagt|sagte|sagten|(?:die|wer|viele|manche|kunden|nutzer) sagen|antwortete?n?|antwortet"
    "|schreibt|schrieben?|meint|meinten?"
    "|behauptet|erklärte?|dit|disent|disait|dirent|répond|répondent|répondit|répondu|écrit|affirme|déclaré?"
    "|dice|dicen|dijo|dijeron|respondió|responden?|respondieron|contestó|contestan?|escribió|afirma|afirmó"
    "|dicono|disse|detto|risponde|rispondono|rispose|risposto|scrive|scrisse|afferma"
    "|diz|dizem|disseram|respondem|respondeu|responderam|escreveu|afirmou"
    "|zegt|zeggen|zei|zeiden|antwoordt|antwoordden?|schrijft|schreef|beweert"
    "|mówi|mówią|powiedział\\w*|odpowiada|odpowiadają|odpowiedział\\w*|napisał\\w*|twierdzi"
    "|говорит|говорят|сказал[аи]?|отвечает|отвечают|ответил[аи]?|пишет|написал[аи]?|заявил[аи]?"
)
REPORTED = re.compile(
    rf"(?<!\w)(?:{_SAID}),?(?: (?:dass|que|che|dat|że|что))? ?[:,]? ?[\"'“„«»‚‹]? ?(?:das |dat |ça, |eso |to |этого )?$"
    r"|(?:说|說|表示|回答|回答说|称|稱|写道|寫道)道?[:,]? ?[\"'“「『]?$"
    r"|(?<!我)[们們]$|[他她它]也?$|(?:誰にも|だれにも|彼は|彼女は|彼らは)[^。、]*$"
    r"|\S ?[\"“„«»‚‹「『] ?$"
)
"""The same in other languages, and an opening quotation mark that is not at the beginning of the answer."""
REPORTED_BEHIND = re.compile(r"[。.]?[」』\"]?と(?:答|言|述|話|回|書|返|思)")
"""Japanese names the speaker after the words that are quoted."""

CAUSE = re.compile(
    r"(?<!\w)(?:wegen|aufgrund|mangels|faute de|en raison d[e']|à cause d[e']|por|debido a|per|a causa di|wegens"
    r"|vanwege|door|z powodu|из-за)(?: \w+)? ?$|(?:因|因为|因為|由于|由於)$"
)
"""What makes a lack of information the cause of something: "wegen nicht genügend Informationen abgelehnt"."""
CONSEQUENCE = re.compile(
    r"[^.;:!?]*(?<!\w)(?:führt|führen|bewirkt|entraîne|provoque|provoca|causa|comporta|implica|leidt tot|powoduje"
    r"|skutkuje|oznacza|prowadzi|приводит|означает)(?!\w)|[^。，,]*(?:导致|導致|会被|將被|将被)"
)
"""The consequence of a lack of information; the answer is then about that consequence."""
CONDITION = re.compile(
    r"(?:^|[.;:!?,。！？，、] ?)(?:wenn|falls|sofern|solange|si|lorsque|quand|cuando|se|quando|als"
    r"|indien|wanneer|jeśli"
    r"|gdy|если|когда)(?!\w)[^.;:!?]*$|(?:如果|若|もし)[^。！？]*$"
)
"""What makes a sentence a condition, "if you do not know ...", not a refusal."""
WITHHOLDING = re.compile(
    r"(?<!\w)(?:wir geben|geben wir|teilen|verkaufen|speichern|erheben|sammeln|übermitteln|partageons|vendons"
    r"|collectons|compartimos|vendemos|guardamos|condividiamo|vendiamo|raccogliamo|partilhamos|compartilhamos|coletamos"
    r"|delen|verkopen|bewaren|udostępniamy|sprzedajemy|(?:ne|n') ?\w+ons)(?: \w+)? ?$"
)
"""Verbs that say what happens with information, not that it is missing: "Wir speichern keine Informationen ..."."""

_SOURCE = r"(?:context|document|passage|text|source|article|excerpt|snippet|search result|material)s?|information"
_SAYING = r"contain|mention|provide|include|specify|state|say|answer|address|indicate|give|discuss|have"
SILENT_SOURCE = re.compile(
    rf"(?<!\w)(?:{_SOURCE})(?: (?:provided|given|above|available|retrieved|\[[\d, ]+\]))*"
    rf" (?:do|does|did)(?: not|n't) (?:\w+ly )?(?:{_SAYING})(?!\w)"
)
"""English for "the documents do not mention". The subject is needed: plain answers say "does not mention" too."""

NO_QUESTION = re.compile(
    r" (?:(?:the|your|our|any|all|more|incoming|phone|telephone) )*"
    r"(?:calls?|phones?|telephones?|doors?|doorbells?|e-?mails|letters|tickets)(?!\w)"
)
"""What follows "I cannot answer" if the answer is about phone calls and the like."""
