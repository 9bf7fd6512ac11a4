"""Patterns that tell a refusal from a mention of one. They are matched with folded text (`refusals`)."""

from __future__ import annotations

import re

TURN = re.compile(
    r"[;:—–]|,?\s\b(?:but|however|though|although|aber|jedoch|doch|allerdings|mais|cependant|toutefois|pourtant|pero"
    r"|sin embargo|no obstante|aunque|ma|però|tuttavia|mas|porém|contudo|no entanto|maar|echter|ale|jednak|lecz|men)\b"
    r"|\band(?= i\b)|,?\s\b(?:но|однако|хотя|ama|fakat)\b"
    r"|(?<!\w)[وف]?(?:لكن\w*|غير ان|الا ان|مع ذلك)(?!\w)|लेकिन|परंतु|परन्तु|किंतु|किन्तु|मगर|हालांकि|हालाँकि"
    r"|但|不过|不過|可是|然而|しかし|ただし|けれど|が、|(?<!\w)하지만|그러나|그렇지만|다만|(?<=모르겠)지만"
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
    r"|(?:정말 |대단히 )?(?:죄송합니다|죄송하지만|죄송해요|미안합니다|유감입니다)"
    r"|다른 .*(?:주세요|주십시오|까요)"
    r"|عذرا|معذرة|المعذرة|عفوا|(?:انا )?اسف[اة]?|اعتذر.*|يرجي .*|من فضلك.*|شكرا.*"
    r"|(?:मुझे )?क्षमा (?:करें|कीजिए|कीजिएगा)|माफ़? (?:करें|कीजिए)|(?:मुझे )?खेद है|कृपया .*|धन्यवाद.*)"
)
"""Other clauses of refusals, which claim nothing."""

QUOTED = re.compile(r"(?:^|[\s(])[\"“„«»‚‹「『《'] ?$")
"""An opening quotation mark before a phrase."""
QUOTED_BEHIND = re.compile(r"[^\"”“»«」』》.!?。]{0,80}[.!?。]? ?(?:[\"”“»«」』》]|'(?= )) ?(?=[^\W]|[—–])")
"""The closing mark, and the sentence that goes on: "'I don't know' is a song"."""
CONDITION_IN_ENGLISH = re.compile(r"(?:^|[.;:!?,] )(?:if|when|whenever|unless|in case|should|once)(?!\w)[^.;:!?,]*$")
"""What makes a sentence a condition: "If I can't find the invoice, I ask"."""
CAUSE_IN_ENGLISH = re.compile(r"(?<!\w)(?:due to|because of|owing to|on grounds of|for) $")
"""What makes a lack of information the cause of something: "rejected due to insufficient information"."""

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
    "|قال|قالت|قالوا|قلت|يقول|تقول|يقولون|اجاب|اجابت|اجابوا|يجيب|رد|ردت|كتب|كتبت|صرح"
    "|कहा|कहते हैं|कहता है|कहती है|बोला|बोली|बोले|लिखा|जवाब दिया|उत्तर दिया"
)
REPORTED = re.compile(
    rf"(?<!\w)(?:{_SAID}),?(?: (?:dass|que|che|dat|że|что|ان\w*|कि))? ?[:,،]? ?[\"'“„«»‚‹]? ?"
    r"(?:das |dat |ça, |eso |to |этого )?$"
    r"|(?:说|說|表示|回答|回答说|称|稱|写道|寫道)道?[:,]? ?[\"'“「『]?$"
    r"|(?<!我)[们們]$|[他她它]也?$|(?:誰にも|だれにも|彼は|彼女は|彼らは)[^。、]*$"
    r"|(?:아무도|누구도)[^.]*$|\S ?[\"“„«»‚‹「『] ?$"
)
"""The same in other languages, and an opening quotation mark that is not at the beginning of the answer."""
REPORTED_BEHIND = re.compile(
    r"[。.]?[」』\"]?と(?:答|言|述|話|回|書|返|思)"
    r"|(?:습니다|어요|네요)?[.]?[\"”'」』] ?(?:이?라고|고|라는|는) ?"
    r"|(?:으면|다면|는다면|다고|다는|는 (?:경우|이유|것|사람)|을 (?:때|경우)|(?:하|할) ?(?:면|때|경우)|한 경우|거나)"
    r"| (?:होता|होती|होने|हो,|हो तो|है कि क्या)"
)
"""Japanese and Korean name the speaker behind the words; Korean and Hindi put "if" behind them."""

CAUSE = re.compile(
    r"(?<!\w)(?:wegen|aufgrund|mangels|faute de|en raison d[e']|à cause d[e']|por|debido a|per|a causa di|wegens"
    r"|vanwege|door|z powodu|из-за|بسبب|لان|نظرا ل|لعدم)(?: \w+)? ?$|(?:因|因为|因為|由于|由於)$"
)
"""What makes a lack of information the cause of something: "wegen nicht genügend Informationen abgelehnt"."""
CONSEQUENCE = re.compile(
    r"[^.;:!?]*(?<!\w)(?:führt|führen|bewirkt|entraîne|provoque|provoca|causa|comporta|implica|leidt tot|powoduje"
    r"|skutkuje|oznacza|prowadzi|приводит|означает|تودي الي|يودي الي|تعني)(?!\w)|[^。，,]*(?:导致|導致|会被|將被|将被)"
    r"|[^.,]*(?:거절|반려|실패)| (?:के कारण|की वजह से|होने पर)"
)
"""The consequence of a lack of information; the answer is then about that consequence."""
CONDITION = re.compile(
    r"(?:^|[.;:!?,。！？，、،؛؟।] ?)(?:wenn|falls|sofern|solange|si|lorsque|quand|cuando|se|quando|als"
    r"|indien|wanneer|jeśli"
    r"|gdy|если|когда|اذا|لو|عندما|حين|حينما|अगर|यदि|जब)(?!\w)[^.;:!?।؟]*$|(?:如果|若|もし)[^。！？]*$"
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
