"""Letters of other scripts that look like Latin ones, after Unicode's confusables (UTS 39). Data.

Only letters that people see as a plain letter of a to z, from the scripts that it is done with. Fullwidth and
mathematical letters are not among them, for NFKC makes them Latin. A capital may look like another letter than its
small form does: "Ν" and "ν".
"""

from __future__ import annotations

_LOOKS = (
    # Greek
    ("αγικνορτυχϲϳεηωσ", "ayikvoptuxcjenwo"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿϜ", "abezhikmnoptyxcjf"),
    # Cyrillic
    ("асԁеһіјӏоԛрѕѵԝхуүгкԍьпт", "acdehijloqpsvwxyyrkgbnt"),
    ("АВСЕНІЈКМОРЅТХУԚԜҮѴԌԀҺӀЬ", "abcehijkmopstxyqwyvgdhlb"),
    # Armenian
    ("հոսօցզքյգ", "hnuogqpjq"),
    ("ՍՏՕԼ", "usol"),
    # Latin letters of phonetic alphabets, and small capitals
    ("ɑɡɩɪʀɴʏʟᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢ", "agiirnylacdejkmoptuvwz"),
    # Cherokee and Lisu capitals
    ("ᎪᏴᏟᎠᎬᎻᏆᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ", "abcdehijklmprstvwz"),
)

LOOKS: dict[str, str] = {sign: plain for signs, latin in _LOOKS for sign, plain in zip(signs, latin, strict=True)}
"""The Latin letter, in small, that a letter looks like."""
