"""Phrases of prompt injection in several languages, as patterns over folded text. Data.

A space in a phrase stands for one to five signs that are no letters; `…` for up to four words, or to twelve letters
where a script has no spaces. Each phrase needs a verb and what it is about, so that prose about rules stays prose.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Sign(StrEnum):
    """What a suspicious text does."""

    OVERRIDE = "override"
    ROLE = "role"
    GRADE = "grade"
    ADDRESS = "address"
    SECRET = "secret"
    MARKER = "marker"
    DELIMITER = "delimiter"
    HIDDEN = "hidden"
    DIRECTION = "direction"
    ENCODED = "encoded"


MEANINGS = {
    Sign.OVERRIDE: "it asks to set earlier instructions aside",
    Sign.ROLE: "it gives the model another role or task",
    Sign.GRADE: "it asks for a grade",
    Sign.ADDRESS: "it speaks to a model",
    Sign.SECRET: "it asks for instructions or for what was said, or to keep something from the reader",
    Sign.MARKER: "it holds marks that chat models read as a change of speaker",
    Sign.DELIMITER: "it imitates the marks that stand around evidence",
    Sign.HIDDEN: "it holds text in characters that are not seen",
    Sign.DIRECTION: "it turns the direction of writing around",
    Sign.ENCODED: "it holds an encoded text that gives instructions",
}

_MODEL = (
    r"(?:ai|a\.i\.|artificial intelligence|language models?|llms?|gpt|chatgpt|chat ?bots?|copilot|claude|gemini|"
    r"(?:ai|virtual|digital) assistants?|ai (?:models?|systems?|agents?|graders?|judges?)|(?:automated|automatic|"
    r"machine) "
    r"(?:graders?|judges?|evaluators?|reviewers?|systems?|assistants?|summarizers?)|retrieval (?:graders?|"
    r"evaluators?|judges?))"
)
_PIECE = r"(?:passage|document|text|evidence|context|chunk|excerpt|article|page|result|snippet|source|paragraph|entry)"
_TOP = (
    r"(?:1|1\.0+|10|ten|one|100|5/5|10/10|1\.0/10|maximum|max|maximal|highest|full|perfect|top|best|excellent|"
    r"relevant|correct|fully relevant|highly relevant)"
)

_BEST = (
    r"(?:highest|maximum|top|full|perfect|best|maximal) (?:possible |available )?(?:relevance )?(?:score|grade|"
    r"rating|marks?|band|"
    r"relevance|number|points)"
)

PHRASES: dict[Sign, tuple[str, ...]] = {
    Sign.OVERRIDE: (
        # English
        r"(?:ignore|disregard|forget|override|bypass|discard|neglect|overlook|set aside|pay no attention to|"
        r"stop following|"
        r"do not follow|don.t follow|abandon|drop|erase|throw away|leave aside) … (?:previous|prior|above|preceding|"
        r"earlier|"
        r"foregoing|system|original|initial|existing|your|former|other) … (?:instructions?|prompts?|rules|guidelines|"
        r"directions|directives?|commands?|rubric|constraints|orders|programming|training|task|criteria)",
        r"(?:ignore|disregard|forget|discard|override) (?:everything|anything|all|"
        r"whatever) (?:that )?you … (?:before|earlier|so far|"
        r"above|told|given|learned|know)",
        r"(?:ignore|disregard|forget|discard|override) … (?:instructions?|prompts?|rubric|directives?|guidance|"
        r"everything|"
        r"anything|all) (?:(?:that )?(?:you (?:were|have been|had been|got|received)|(?:was|were) (?:given|told|said|"
        r"written))"
        r"|(?:stated |written |given |said )?(?:above|before this|so far|until now|up to (?:this point|now)))",
        r"(?:instructions?|prompts?|rules|guidelines|directives) … (?:above|before|given|earlier|"
        r"previously) … (?:are|is) "
        r"(?:now )?(?:void|invalid|obsolete|cancelled|canceled|revoked|superseded|no longer (?:valid|apply|in force))",
        r"(?:do not|don.t|never) (?:obey|listen to) … (?:system|developer|operator|previous|user) … (?:prompt|message|"
        r"instructions?|rules)",
        r"(?:new|updated|real|actual|secret|important) instructions? (?:for (?:the |this |any )?"
        + _MODEL
        + r"|from the "
        r"(?:system|developers?|administrators?|operators?))",
        r"(?:scrap|ditch|cancel|revoke|void|put aside|set aside|leave aside|tear up|throw out|wipe|purge) … (?:brief|"
        r"guidance|"
        r"instructions?|directions|directives|prompt|rules|orders|requirements) … (?:given|got|received|earlier|"
        r"before|previous"
        r"|original|above|were|had)?",
        r"(?:everything|anything|whatever|all|what) … (?:told|said|gave|instructed|asked|ordered|"
        r"wrote) (?:to )?you … (?:before|"
        r"earlier|previously|above|so far|(?:up to|until) now|(?:is|are) (?:now )?(?:cancell?ed|void|wrong|obsolete|"
        r"replaced))",
        r"(?:everything|anything|whatever|all|what) … you (?:were|have been|had been|got) (?:told|given|instructed|"
        r"asked|ordered) "
        r"… (?:before|earlier|previously|above|so far|(?:up to|until) now|(?:is|are) (?:now )?(?:cancell?ed|void|"
        r"wrong|obsolete))",
        r"(?:your|earlier|previous|prior|preceding|system) (?:\w+ )?(?:guidance|instructions?|rules|prompts?|"
        r"directives|guidelines|"
        r"directions|orders) (?:is|are|do|does|has|have|were)? ?(?:now )?(?:no longer|not|void|cancell?ed|obsolete|"
        r"been (?:replaced|"
        r"updated|revoked|superseded|cancell?ed))",
        r"(?:new|updated|revised|urgent) (?:orders?|directives?|instructions?|commands?|task)s? (?:from|by|:|for you|"
        r"below|follow)",
        # German
        r"(?:beachte|befolge|befolgen sie|beachten sie) … (?:obigen?|bisherigen?|vorherigen?|früheren?|"
        r"deine) … (?:vorgaben|"
        r"anweisungen|regeln|instruktionen) … (?:nicht|keinesfalls)",
        r"(?:alles|was) … (?:vorher|bisher|zuvor|bis jetzt|oben) … (?:gesagt|mitgeteilt|vorgegeben|"
        r"angewiesen) … (?:ungültig|"
        r"vergiss|gilt nicht|hinfällig|vergessen)",
        r"(?:ignoriere?|ignorieren sie|vergiss|vergessen sie|missachten?|missachten sie|übergehe|verwirf|verwerfen sie|"
        r"beachte nicht|setze? dich hinweg über) … (?:alle|vorherigen?|bisherigen?|obigen?|früheren?|vorigen?|deine|"
        r"ihre|"
        r"vorangegangenen?|vorstehenden?|ursprünglichen?) … (?:anweisung(?:en)?|instruktionen|befehle|regeln|"
        r"vorgaben|prompts?)",
        # French
        r"(?:ignore[rz]?|oublie[rz]?|ne (?:tiens|tenez) (?:pas|plus) compte|néglige[rz]?|(?:fais|faites) abstraction|"
        r"ne (?:suis|suivez) (?:pas|plus)) … (?:instructions?|consignes?|directives?|règles?|ordres?|prompts?) … "
        r"(?:précédent(?:e?s)?|antérieur(?:e?s)?|ci.dessus|initiales?|reçue?s|système|données)",
        # Spanish, Italian, Portuguese
        r"(?:ignora[rd]?|ignore[n]?|olvida[rd]?|olvide[n]?|haz caso omiso|haga caso omiso|descarta|no sigas|"
        r"pasa por alto) … "
        r"(?:instrucciones|indicaciones|órdenes|reglas|directrices|instrucción) … (?:anteriores?|previas?|"
        r"precedentes|de "
        r"arriba|iniciales|recibidas|del sistema)",
        r"(?:ignora(?:re|te)?|dimentica(?:re|te)?|trascura|non seguire) … (?:istruzioni|indicazioni|regole|direttive|"
        r"ordini) "
        r"… (?:precedenti|sopra|iniziali|ricevute|di sistema)",
        r"(?:ignore[m]?|ignorar|esqueç?a|desconsidere|despreze) … (?:instruções|ordens|regras|diretrizes|"
        r"orientações) … "
        r"(?:anteriores|acima|prévias|iniciais|recebidas|do sistema)",
        # Dutch, Swedish, Polish, Turkish, Indonesian, Vietnamese
        r"(?:negeer|vergeet|sla over) … (?:vorige|eerdere|voorgaande|bovenstaande|alle|je) … (?:instructies|"
        r"aanwijzingen|"
        r"opdrachten|regels)",
        r"(?:ignorera|glöm|bortse från) … (?:tidigare|föregående|ovanstående|alla) … (?:instruktioner|anvisningar|"
        r"regler)",
        r"(?:zignoruj|ignoruj|zapomnij|pomiń) … (?:poprzedni\w*|wcześniejsz\w*|powyższ\w*|"
        r"wszystki\w*) … (?:instrukcj\w*|"
        r"polece\w*|zasad\w*)",
        r"(?:önceki|yukarıdaki|bütün|tüm) … (?:talimat\w*|komut\w*|yönerge\w*) … (?:yok say\w*|görmezden gel\w*|"
        r"unut\w*|"
        r"dikkate alma\w*)",
        r"(?:abaikan|lupakan) … (?:instruksi|perintah|petunjuk|aturan) … (?:sebelumnya|di atas|awal)",
        r"(?:bỏ qua|phớt lờ|quên) … (?:hướng dẫn|chỉ dẫn|lệnh|chỉ thị) … (?:trước|trên)",
        # Russian, Ukrainian
        r"(?:игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?|отбрось(?:те)?|не обращай(?:те)? внимания на|"
        r"ігноруй(?:те)?|"
        r"забудь(?:те)?) … (?:предыдущ\w+|прежн\w+|вышеуказанн\w+|все|всех|свои|попередн\w+|усі) … (?:инструкц\w+|"
        r"указани\w+|"
        r"команд\w*|інструкц\w+|вказівк\w+)",
        # Chinese, Japanese, Korean
        r"(?:忽略|无视|無視|忘记|忘記|不要理会|不要理會|不要遵守|抛开)…(?:之前|以上|上述|先前|前面|所有|上面|此前|原有)…(?:指令|指示|说明|說明|提示|规则|"
        r"規則|命令|要求)",
        r"(?:以前|上記|これまで|前の|すべて|全て|今まで|元の)…(?:指示|命令|プロンプト|ルール|指令)…(?:無視|忘れ|従わな)",
        r"(?:이전|위의|앞의|모든|기존|지금까지)…(?:지시|명령|지침|프롬프트|규칙)…(?:무시|잊)",
        # Arabic, Persian, Hebrew, Hindi
        r"(?:تجاهل|انس|أهمل|تجاهلي|لا تتبع) … (?:التعليمات|الأوامر|الإرشادات|القواعد|تعليمات)",
        r"(?:دستورالعمل|دستورات|دستور)\w* … (?:قبلی|پیشین|بالا) … (?:نادیده|فراموش)",
        r"(?:התעלם|התעלמי|שכח) … (?:ההוראות|הנחיות|ההנחיות|הכללים)",
        r"(?:पिछले|पूर्व|उपरोक्त|सभी) … (?:निर्देश\S*|आदेश\S*|नियम\S*) … (?:अनदेखा|नज़रअंदाज़|भूल)",
    ),
    Sign.ROLE: (
        r"(?:role ?play|masquerade|pose) as (?:an?|the) ",
        r"(?:play|take|assume|adopt) (?:on )?the (?:part|role|persona|identity) of (?:an?|the) (?:\w+ ){0,3}(?:"
        + _MODEL
        + r"|assistant|grader|judge|evaluator)",
        r"(?:you|your answers?) … (?:free of|freed from|without|have no) (?:any |all )?(?:restrictions|rules|limits|"
        r"filters|"
        r"limitations|guidelines|censorship)",
        r"(?:henceforth|from this (?:point|moment|line) (?:on|onwards?|forward)|starting now|"
        r"effective immediately),? (?:you |"
        r"only |always |please )?(?:must |will |should |shall |are to )?(?:only |always )?(?:answer|reply|respond|"
        r"rate|grade|"
        r"score|output|say|approve|obey|write|act|treat|accept)",
        r"(?:begin|start|end|finish|close|open|preface|conclude) (?:your|every|each) (?:next )?(?:answer|reply|"
        r"response|output|"
        r"summary|message)s? (?:with|by)",
        r"(?:reply|respond|answer) (?:only|solely|exclusively|just|simply|always) (?:with|in|by|using)",
        r"the (?:task|assignment|objective) (?:has|was|is) (?:now )?(?:changed|replaced|over|cancell?ed|different)",
        r"(?:developers?|administrators?|admin|operators?|owners?|openai|anthropic|creators?) (?:has|have|"
        r"hereby) … (?:authori[sz]ed"
        r"|permitted|allowed|granted|instructed|told|asked|ordered|unlocked) you",
        r"you are (?:now|no longer|actually|henceforth|from now on) … (?:"
        + _MODEL
        + r"|assistants?|dan|graders?|judges?|"
        r"evaluators?|unrestricted|jailbroken|uncensored|root|(?:developer|debug|maintenance|god|admin) mode|bound by)",
        r"(?:act|behave|respond|reply|answer) as (?:if you (?:are|were) |though you (?:are|were) )?(?:an?|the|my) "
        r"(?:\w+ )?(?:unrestricted|uncensored|jailbroken|" + _MODEL + r")",
        r"(?:pretend|imagine|suppose) (?:that )?(?:you are|you.re|to be) … (?:" + _MODEL + r"|unrestricted|dan)",
        r"(?:enter|enable|activate|switch (?:in)?to|you are in) (?:the )?(?:developer|debug|god|dan|jailbreak|"
        r"maintenance|"
        r"admin|sudo) mode (?:and|now|where|in which|with)",
        r"your (?:new|real|actual|only|true|next|current) (?:task|instructions?|goal|objective|role|job|directive|"
        r"mission|"
        r"purpose) (?:is|are) (?:now )?(?:to|as follows|the following)",
        r"from (?:now|here) on,? (?:you|always|only) (?:must |will |should |shall |are to |have to )?(?:always |"
        r"only |never )?"
        r"(?:answer|reply|respond|rate|grade|score|output|say|ignore|obey|follow|pretend|act)",
        r"(?:du bist|sie sind) (?:jetzt|ab jetzt|von nun an|nun) … (?:assistent\w*|ki|sprachmodell|modell|bewerter)",
        r"(?:tu es|vous êtes) (?:maintenant|désormais) … (?:assistant|ia|modèle|évaluateur)",
        r"(?:ahora eres|a partir de ahora eres) … (?:asistente|ia|modelo|evaluador)",
        r"(?:你现在是|你現在是|从现在开始你|從現在開始你)…(?:助手|模型|人工智能|评|評)",
        r"(?:теперь ты|отныне ты|теперь вы) … (?:ассистент|модель|ии|помощник)\w*",
        r"あなたは(?:今|これ)から…(?:アシスタント|ai|モデル|評価)",
    ),
    Sign.GRADE: (
        r"(?:please|must|should|always|then|you|only|simply|just|now|to|and) (?:give|return|output|choose|pick|"
        r"select|assign|award|"
        r"report|grant|use|put|set|respond with|reply with|answer with) … " + _BEST,
        r"(?:give|return|output|choose|pick|select|assign|award|report|grant|respond with|reply with|answer with) … "
        + _BEST
        + r" … (?:this|the (?:above|following|present)|it|them) ?"
        + _PIECE
        + "?",
        r"(?:this|the (?:above|following|present)) " + _PIECE + r" … (?:deserves|earns|merits|requires|gets|receives|"
        r"is worth|"
        r"warrants) … (?:" + _BEST + r"|1\.0+|10/10|ten out of ten|10 out of 10)",
        r"(?:correct|right|proper|only|expected|appropriate|true) … (?:score|grade|rating|relevance|mark|"
        r"verdict) … (?:this|the "
        r"(?:above|following)) " + _PIECE + r" (?:is|=|:) ?" + _TOP,
        r"(?:return|output|give|report|assign|set|use) … (?:score|grade|rating|relevance|mark) … (?:of|to|as|at|=|"
        r":) ?(?:1\.0+|1|one|"
        r"10|ten|100) … (?:this|the (?:above|following)) " + _PIECE,
        r"(?:gib|geben sie|vergib|verleih\w*|erteile\w*) … (?:bestnote|höchstnote|volle punktzahl|"
        r"höchste (?:punktzahl|bewertung|"
        r"note|wertung))",
        r"(?:attribue[rz]?|donne[rz]?|accorde[rz]?|mets|mettez) … (?:note|score|évaluation) (?:maximale?|"
        r"la plus haute|parfaite)",
        r"(?:otorga|da|dale|dele|asigna|concede|pon) … (?:puntuación|calificación|nota|puntaje) (?:máxima|máximo|"
        r"más alta|perfecta)",
        r"(?:assegna|dai|attribuisci) … (?:punteggio|voto|valutazione) (?:massim[oa]|più alt[oa])",
        r"(?:dê|atribua|conceda) … (?:pontuação|nota|avaliação) (?:máxima|mais alta)",
        r"(?:поставь(?:те)?|дай(?:те)?|присвой(?:те)?) … (?:высш\w+|максимальн\w+|наивысш\w+) (?:оценк\w+|балл\w*)",
        r"(?:给|給|打|评|評)…(?:满分|滿分|最高分|最高评分|最高評分)",
        r"(?:満点|最高点|最高評価|最高スコア)…(?:つけ|付け|与え|して)",
        r"(?:만점|최고 ?점수|최고점)…(?:주|매기|부여)",
        r"(?:rate|grade|score|mark) this " + _PIECE + r" (?:at |as |with |a |an )*(?:1\.0+|10|ten|5/5|100|highly|"
        r"maximum)",
        r"(?:rate|grade|score|mark|judge|rank|assign|give|award|evaluate|classify|label|consider|treat) … (?:this|"
        r"the|every|"
        r"each|all|our|following|above) (?:\w+ ){0,2}"
        + _PIECE
        + r"s? … (?:as|with|at|to be|be|a|an|the|of|score|grade|"
        r"rating) (?:a |an |the |being |exactly |score of |grade of |rating of )*" + _TOP,
        r"(?:give|assign|award) (?:it|this|them) (?:a |an |the )?(?:score|grade|rating|mark|relevance) (?:of |"
        r"score of )?" + _TOP,
        r"(?:give|assign|award|return|output) … (?:the )?(?:highest|maximum|top|perfect|full|"
        r"best) (?:possible )?(?:relevance )?"
        r"(?:score|grade|rating|marks) … (?:to |for )(?:this|the) " + _PIECE,
        r"(?:this|the (?:above|following|present)) "
        + _PIECE
        + r" (?:must|should|has to|needs to|is to|shall) (?:always )?"
        r"(?:be |receive |get |score )(?:rated|graded|scored|judged|marked|considered|ranked|classified|given|"
        r"awarded)?…" + _TOP,
        r"(?:respond|reply|answer|output|return|print|write) … (?:score|grade|relevance|rating) (?:of|is|as|=|"
        r":)? ?(?:1\.0+|10|"
        r"1|100|maximum)(?![\d.]*\w)",
        r"\{\s*[\"'](?:score|scores|evaluations|verdict|sentences|reasoning)[\"'](?=\s*:)",
        r"(?:bewerte|bewerten sie|benote) … (?:diese|diesen|dieses|den|die) (?:passage|text|abschnitt|dokument|"
        r"textstelle) … "
        r"(?:mit|als) (?:\w+ )?(?:1[.,]0|1|10|höchst\w*|voll\w*|relevant|maximal\w*)",
        r"(?:note[rz]?|évalue[rz]?) … (?:ce|cet|cette) (?:passage|texte|document|extrait) … (?:1|1[.,]0|10|maximale?)",
        r"(?:califica|puntúa|evalúa) … (?:este|esta) (?:pasaje|texto|documento|fragmento) … (?:1|1[.,]0|10|máxim\w+)",
        r"(?:оцени(?:те)?) … (?:этот|эту|данный) (?:отрывок|текст|документ|фрагмент) … (?:1|1[.,]0|10|максимальн\w+)",
        r"(?:给|給|将|請将|请将)…(?:这|這|此|本)(?:段|篇|个|個)?(?:文本|文章|段落|文档|文檔|内容)…(?:满分|滿分|最高分|10分|1\.0|10)",
    ),
    Sign.ADDRESS: (
        r"(?:to|for) (?:the |any |all |every |whichever |whatever )?" + _MODEL + r" (?:(?:that|which|who) )?(?:is |"
        r"are |will )?"
        r"(?:process|read|summari[sz]|evaluat|grad|index|pars|scor|judg)\w+ (?:this|these|the present)",
        _MODEL + r" (?:(?:that|which|who) )?(?:is |are )?(?:read|process|summari[sz]|evaluat|grad|index|pars|scor)\w+ "
        r"(?:this|these)"
        r" … (?:must|should|shall|has to|have to|is to|are to|will|need to|needs to|ought to|may not|cannot)",
        r"(?:dear|hey|hello|attention,?|listen,?|you,) (?:\w+ )?(?:evaluator|grader|judge|summari[sz]er|assistant|"
        r"model|bot|reviewer)"
        r"(?=\s*[,:!])",
        r"(?:note|notice|message|memo|instructions?|attention|warning|reminder|hint) (?:to|for) (?:the |any |all |"
        r"every )?"
        r"(?:\w+ )?" + _MODEL,
        r"(?:if|when|since|because) you(?: are|.re) (?:an? |the )?(?:\w+ )?"
        + _MODEL
        + r"(?: that| which| who|,| reading)?",
        r"(?:dear|hey|hello|attention,?|listen,?) (?:the |all )?" + _MODEL + r"(?=[,:!])",
        r"(?:any|every|all|the) "
        + _MODEL
        + r" (?:that |which |who )?(?:reads?|reading|processing|processes|summari[sz]\w+|"
        r"evaluat\w+|grading|grades) (?:this|it|the) … (?:must|should|shall|has to|is to|will|needs to)",
        r"as an (?:ai|llm|ai language model|large language model|ai assistant),? (?:you|i) (?:must|should|cannot|"
        r"can.t|will|"
        r"am|are|have)",
        r"(?:wenn du|falls du|wenn sie) … (?:eine? )?(?:ki|sprachmodell|chatbot|llm) (?:bist|sind)",
        r"(?:si tu es|si vous êtes) (?:une? )?(?:ia|modèle de langage|chatbot|llm)",
        r"(?:si eres|si usted es) (?:una? )?(?:ia|modelo de lenguaje|chatbot|llm)",
    ),
    Sign.SECRET: (
        r"(?:what|which) … (?:your|the) (?:system|hidden|original|initial|secret) (?:prompt|instructions?|message)",
        r"what … your (?:system prompt|instructions) (?:are|is|say|says|contain)",
        r"(?:conceal|hide|keep|withhold) … (?:from|unknown to|secret from) (?:the |your )?(?:user|reader|human|"
        r"person who asked)",
        r"without (?:telling|informing|alerting|notifying) (?:the |your )?(?:user|reader|human)",
        r"(?:reveal|print|show|repeat|output|disclose|leak|display|tell me|write out|recite|quote|expose|"
        r"dump) … (?:your|the) "
        r"(?:system|hidden|initial|original|secret|full|internal|entire) (?:\w+ )?(?:prompt|instructions?|rules|"
        r"system message)",
        r"(?:your|the) system prompt … (?:says?|reads?|is|verbatim|word for word|in full)",
        r"(?:send|post|forward|email|exfiltrate|transmit|upload|append|leak) (?:the |this |our |all )?(?:whole |"
        r"entire |full )?(?:conv"
        r"ersation|chat|chat history|chat log|prompt) (?:to|at|into|via)",
        r"(?:send|post|forward|email|exfiltrate|transmit|upload|append|leak) … (?:conversation|chat history|"
        r"(?:user.s|users) "
        r"(?:\w+ )?(?:question|query|data|message|name|password)|system prompt|api keys?|previous messages) … (?:to|"
        r"at|into|via)",
        r"(?:do not|don.t|never) (?:tell|inform|let|mention (?:this|it|that|any of this) to|reveal (?:this|it|"
        r"that) to|show "
        r"(?:this|it) to) (?:the )?(?:user|reader|human|person (?:asking|who asked))",
        r"instead,? (?:of (?:answering|grading|summari[sz]ing|judging)|(?:tell|inform|advise) (?:the|your) user)",
        r"(?:tell|inform|advise|convince|instruct) the user (?:that|to) … (?:account|password|call|visit|click|"
        r"download|install|"
        r"send|pay|https?|www)",
    ),
}

MARKERS = re.compile(
    r"<\|[a-z][a-z0-9_ ]{1,30}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|<\|?(?:begin|"
    r"end)[ _▁]of[ _▁]sentence\|?>"
    r"|</?(?:context|instructions?|untrusted|user_input|retrieved_\w+|documents?)>"
    r"|^[ \t]*(?:human|user)[ \t]*:[^\n]{0,300}\n{1,2}[ \t]*(?:assistant|ai|model|bot)[ \t]*:"
    r"|</?(?:system|assistant)(?:[_ -]?(?:prompt|message|instructions?))?>"
    r"|^[ \t]*#{2,4}[ \t]*(?:system(?:[ \t]+(?:prompt|message))?|instructions?|assistant|human|response)[ \t]*:[ \t]*$"
    r"|^[ \t]*#{2,4}[ \t]*system[ \t]*\n+(?=.{0,40}\b(?:you|your|ignore|must)\b)"
    r"|^[ \t]*\[?(?:system|assistant|developer)\]?[ \t]*(?:message|prompt|note|override)?[ \t]*:[ \t]*(?=(?:you\b|"
    r"your\b|ignore|"
    r"from now|new instruction|the (?:user|passage|document)|disregard|override|stop\b))",
    re.MULTILINE,
)
DELIMITERS = re.compile(
    r"<\s*+/?\s*+(?:evidence|passage|sentence)\s*+>|\[\s*+/\s*+evidence\s*+\]"
    r"|(?<![-=#*\[<(])[-=#*\[<(]{2,}+\s*+(?:end|begin|start|beginning)(?: of)?(?: the)? (?:evidence|context|"
    r"passages?|documents?|data|untrusted "
    r"\w+|user input|retrieved \w+)\b\s*+[-=#*\])>]"
)
_GAP, _SPACELESS_GAP = r"[\W_]{1,5}(?:[^\W_]{1,30}[\W_]{1,5}){0,4}", r".{0,12}?"
SPACELESS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def compiled(phrase: str) -> re.Pattern[str]:
    """The pattern that a phrase stands for; only whole words where a script has spaces."""
    if SPACELESS.search(phrase):
        return re.compile(phrase.replace("…", _SPACELESS_GAP).replace(" ", r"\s{0,3}"), re.DOTALL)
    pattern = (
        phrase.replace(" … ", _GAP).replace("…", r"[\W_](?:[^\W_]{1,30}[\W_]{1,5}){0,4}").replace(" ", r"[\W_]{1,5}")
    )
    return re.compile(rf"(?:{pattern})(?![^\W_])")
