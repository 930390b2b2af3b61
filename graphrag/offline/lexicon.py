"""Word lists of the rules: general English, nothing about any one text."""

from graphrag.text.words import words_of

QUESTION_WORDS = words_of(
    """movie film story scene begin beginning end ending happen happens kind type name named called
    character characters tell tells say says"""
)
"""Words that shape a question and say little about its answer; they count half."""

TITLES = words_of(
    """mr mrs ms miss dr doctor prof professor sir lady lord king queen prince princess father
    mother brother sister friar monk captain colonel general sergeant inspector sheriff bishop
    monsieur madame mademoiselle mme mlle herr frau fräulein count countess duke duchess baron
    baroness m deputy president chief uncle aunt major lieutenant judge abbot emperor empress señor
    señora don doña saint constable marshal senator governor chancellor commander officer agent
    detective"""
)

PARTICLES = words_of(
    "of au von van de del della da di du des la le der den und bin al el ibn y zu ten"
)

PLACE_HEADS = words_of(
    """castle hotel forest wood woods river mountain mountains mount city town village street road
    valley desert cemetery abbey prison cave island temple canyon republic palace bridge square
    station chapel monastery gate lake tower house hall inn tavern park port harbour harbor sea
    ocean bay beach hill hills kingdom empire county shire district cathedral church airport farm
    garden gardens library catacombs fortress camp peak plaza avenue lane province state country"""
)
PLACE_FIRST = words_of(
    "hotel mount lake palazzo chateau château schloss villa fort castle isle cape port"
)
ORGANIZATION_HEADS = words_of(
    """company circus society army guard guards police bank university council brotherhood club
    museum scouts knights nazis corporation association league party ministry school college
    institute agency committee regiment legion bakery newspaper times press trust union government
    parliament court division order band gang family"""
)
EVENT_HEADS = words_of(
    """war crusade crusades festival battle wedding feast tournament coronation revolution
    conference games ceremony funeral massacre siege christmas easter"""
)
OBJECT_HEADS = words_of(
    """cross grail diary painting book sword ring cup ark medal crown letter map tablet shield
    journal portrait statue jewel diamond box zeppelin rifle dagger arrow scroll bible"""
)

PLACE_NAMES = words_of(
    """africa america asia europe england scotland wales ireland britain france germany italy spain
    portugal austria hungary switzerland poland russia ukraine turkey greece egypt israel syria
    iraq iran jordan india china japan korea vietnam thailand mexico canada brazil argentina chile
    peru cuba australia norway sweden finland denmark belgium netherlands holland luxembourg
    czechoslovakia romania bulgaria serbia croatia bohemia persia arabia morocco algeria tunisia
    libya kenya nigeria ethiopia london paris berlin rome venice florence milan naples vienna
    madrid lisbon barcelona athens istanbul constantinople jerusalem cairo alexandria moscow prague
    budapest warsaw dublin edinburgh york oxford cambridge nottingham salzburg zurich geneva munich
    hamburg brussels amsterdam oslo stockholm copenhagen helsinki washington boston chicago utah
    texas california nevada arizona colorado florida hollywood tokyo beijing shanghai delhi mumbai
    sydney melbourne toronto montreal havana damascus baghdad tehran dover normandy bavaria tuscany
    sicily siberia alps sahara mediterranean atlantic pacific danube rhine thames nile"""
)

DEMONYMS = words_of(
    """english british scottish irish welsh french german austrian italian spanish portuguese greek
    turkish roman arab arabic arabian european american african asian indian chinese japanese
    russian polish hungarian swiss dutch swedish norwegian danish egyptian jewish christian muslim
    catholic protestant moor moorish celtic celt saxon norman viking latin hebrew englishman
    englishmen frenchman medieval victorian oriental nazi cornish venetian franciscan maltese
    prussian alpine turk german renaissance"""
)

NOT_NAMES = words_of(
    """monday tuesday wednesday thursday friday saturday sunday january february march april june
    july august september october november december god i i'm i'll i've i'd ok okay oh ah yes no mr
    mrs sir madam ma'am hello hey please thanks thank goodbye well look wait come stop listen right
    good great sorry chapter scene part act int ext cut fade continued cont'd more later meanwhile
    suddenly finally eventually afterwards instead despite unlike beyond beneath beside besides
    across upon nearby elsewhere tonight today tomorrow yesterday there here everyone everybody
    somebody someone nobody one two three four five six seven eight nine ten both many several some
    most all each every another other few even only although because since while when where who
    what why how if as according thanks inside outside behind before after until unless whenever
    wherever whatever during within without between among under over above below against along
    around through throughout toward towards near next then now once again also still just perhaps
    maybe indeed therefore however moreover furthermore soon early late first second third last day
    night morning evening close angle wide shot interior exterior continuous title insert mute
    montage dissolve voice over moments dear darling boy boys man men woman women girl girls sir
    father mother brother sister whoever north south east west please"""
)

SPEECH_AND_ACTION = words_of(
    """says said asks asked tells told answers answered replies replied explains explained shouts
    shouted whispers whispered cries cried calls called orders ordered insists insisted admits
    admitted warns warned promises promised agrees agreed refuses refused declares declared begs
    begged laughs laughed smiles smiled nods nodded looks looked stares stared runs ran walks
    walked rides rode takes took gives gave grabs grabbed pulls pulled pushes pushed throws threw
    kills killed shoots shot fights fought saves saved finds found sees saw hears heard knows knew
    thinks thought believes believed wants wanted loves loved hates hated marries married dies died
    sits sat stands stood lies turns turned opens opened leaves left enters entered arrives arrived
    escapes escaped climbs climbed jumps jumped drinks drank eats ate writes wrote reads read
    learns learned realizes realises decides decided tries tried offers offered steals stole hides
    hid holds held brings brought sends sent meets met helps helped follows followed leads led"""
)

PLACE_BEFORE = {
    word: weight
    for weight, words in {
        2.0: "in into near outside inside",
        1.5: "through across",
        1.0: "towards toward at reach reaches",
        0.7: "from",
        0.5: "leave",
        0.3: "to",
    }.items()
    for word in words.split()
}

MOTION = words_of(
    """go goes going went come comes came return returns returned travel travels travelled traveled
    ride rides rode drive drives drove fly flies flew sail sails sailed hurry hurries hurried flee
    flees fled head heads headed back way road train journey trip move moves moved march marches
    marched sent"""
)
