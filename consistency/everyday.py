"""Other words for values that people seldom call by their name: "not too costly" is moderate, ramen is Japanese.

General knowledge, written by hand; a domain file says more of its own values. WordNet relates words of one meaning, not
a dish to its kitchen.
"""

from collections.abc import Iterable
from functools import lru_cache

from consistency.reading import words_of

SAID: dict[str, str] = {
    "cheap": "cheap, inexpensive, affordable, budget, economical, low cost, low priced, bargain, not expensive",
    "moderate": "moderate, moderately, average priced, average price, mid priced, mid range, medium priced, "
    "reasonable, reasonably, not very costly, not too expensive, not too costly, fairly priced, affordable, "
    "economical, intermediate",
    "pricey": "pricey, expensive, costly, upscale, high priced, high end",
    "expensive": "expensive, pricey, costly, upscale, high priced, high end",
    "ultra high-end": "ultra high end, fancy, luxury, luxurious, exclusive, high end, very expensive",
    "compact": "compact, small, smaller, mini, little, tiny",
    "standard": "standard, medium, mid size, mid sized, midsize, intermediate, regular, normal, average",
    "full-size": "full size, full sized, large, larger, big, spacious, roomy, huge",
    "suv": "suv, jeep, off road, four wheel drive",
    "italian": "italian, pizza, pasta, spaghetti, lasagna, risotto, pizzeria",
    "pizza": "pizza, pizzeria, pizzas",
    "japanese": "japanese, sushi, ramen, sashimi, udon, tempura, teriyaki, sake",
    "sushi": "sushi, japanese, sashimi",
    "chinese": "chinese, noodles, noodle, dumplings, dim sum, fried rice, chow mein, szechuan",
    "mexican": "mexican, taco, tacos, burrito, burritos, quesadilla, enchiladas, tortillas",
    "american": "american, burger, burgers, barbecue, bbq, southern, steak, steakhouse, hot dogs, fries, grill, "
    "soul food",
    "barbecue": "barbecue, bbq, grill, ribs",
    "burgers": "burgers, burger, hamburger, hamburgers, fast food",
    "indian": "indian, curry, naan, masala, biryani, tandoori, dosa",
    "mediterranean": "mediterranean, middle eastern, falafel, hummus, kebab, kebabs, greek, lebanese, gyro, turkish",
    "greek": "greek, gyro, gyros, souvlaki",
    "thai": "thai, pad thai, thailand, malaysian",
    "korean": "korean, kimchi, bulgogi, bibimbap",
    "vietnamese": "vietnamese, pho, banh mi",
    "french": "french, crepes, baguette, bistro, croissant",
    "spanish": "spanish, tapas, paella",
    "tapas": "tapas, spanish, small plates",
    "seafood": "seafood, fish, lobster, crab, shrimp, oysters, prawns, sea food",
    "sandwich": "sandwich, sandwiches, sub, subs, panini, deli, fast food",
    "fast food": "fast food, quick bite, burgers, fries",
    "coffeehouse": "coffeehouse, coffee, cafe, espresso, latte, coffee shop, light bites",
    "asian": "asian, oriental, chinese, japanese, thai, far eastern",
    "asian fusion": "asian fusion, asian, fusion, oriental",
    "vegetarian": "vegetarian, vegan, veggie, meatless, plant based",
    "breakfast": "breakfast, brunch, pancakes, waffles, bagels",
    "bakery": "bakery, bread, pastry, pastries, cakes",
    "dessert": "dessert, desserts, ice cream, sweets, sweet, cake",
    "sports": "sports, sport, game, games, match, matches, sporting, tournament",
    "music": "music, concert, concerts, gig, gigs, band, musical, live show",
    "theater": "theater, theatre, play, drama, musical",
    "comedy": "comedy, comedies, funny, comic, comical, humorous, humor, laugh, hilarious",
    "crime": "crime, violent, gangster, gangsters, mafia, criminal, heist",
    "horror": "horror, scary, frightening, creepy, terrifying, ghost, spooky",
    "romance": "romance, romantic, love, love story",
    "romantic": "romantic, romance, love, love story",
    "action": "action, fighting, explosive, fight, stunts",
    "adventure": "adventure, adventurous, quest, expedition",
    "biographical": "biographical, biography, life history, life story, biopic, true story, real life, real person",
    "biography": "biography, biographical, life history, life story, biopic, true story, real life, real person",
    "mystery": "mystery, detective, whodunit, mysterious, suspense, puzzle",
    "thriller": "thriller, suspense, thrilling, suspenseful, exciting",
    "drama": "drama, dramatic, emotional, melodrama, serious",
    "family": "family, kids, children, all ages",
    "sci-fi": "sci fi, scifi, science fiction, futuristic, space, aliens, future",
    "science fiction": "science fiction, sci fi, scifi, futuristic, space, aliens",
    "fantasy": "fantasy, fantastic, magical, magic, imaginary, imaginative, fictional, fairy tale",
    "animation": "animation, animated, cartoon, cartoons, anime",
    "animated": "animated, animation, cartoon, cartoons, anime",
    "documentary": "documentary, documentaries, real events",
    "musical": "musical, musicals, singing, songs",
    "war": "war, military, battle, soldiers",
    "western": "western, cowboy, cowboys",
    "sports drama": "sports, sport",
    "tv": "tv, television, display, screen, tele, telly",
    "park": "park, garden, gardens, playground, parks",
    "place of worship": "place of worship, church, temple, mosque, synagogue, religious, cathedral, shrine, worship",
    "theme park": "theme park, amusement park, rides, roller coaster, amusement",
    "museum": "museum, museums, exhibits, exhibition, gallery",
    "historical landmark": "historical landmark, historic, historical, monument, history, landmark, heritage, ancient",
    "performing arts venue": "performing arts, theater, theatre, opera, concert hall, live performance, plays",
    "nature preserve": "nature preserve, nature, wildlife, hiking, natural, reserve, outdoors",
    "shopping area": "shopping, mall, shops, market, shop, stores",
    "sports venue": "sports venue, stadium, arena, ballpark, sports, sporty",
    "tourist attraction": "tourist attraction, tourist, sightseeing, attractions, touristy, tourists",
    "family counselor": "family counselor, counselor, counsellor, family therapist, family, counseling",
    "psychologist": "psychologist, psychology",
    "psychiatrist": "psychiatrist, psychiatry, psychiatric",
    "economy": "economy, coach, cheapest, cheap",
    "premium economy": "premium economy, premium",
    "business": "business, business class",
    "first class": "first class, first",
    "checking": "checking, current account",
    "savings": "savings, saving",
    "none": "no, none, without",
    "hip hop": "hip hop, rap, hiphop",
    "rap": "rap, hip hop",
    "electronica": "electronica, electronic, techno, electro, edm",
    "electronic": "electronic, electronica, techno, electro, edm, dance",
    "country": "country, folk",
    "r&b": "r and b, rnb, rhythm and blues, soul",
}  # fmt: skip


@lru_cache(maxsize=1_024)
def said_for(value: str) -> tuple[tuple[str, ...], ...]:
    """Returns what people say for a value, each as words; nothing where it is not known."""
    return tuple(words_of(phrase) for phrase in SAID.get(value.lower(), "").split(", ") if phrase)


@lru_cache(maxsize=2_048)
def is_kept_in(value: str, listed: Iterable[str]) -> bool:
    """Whether a value is another word for one of those listed."""
    words = words_of(value)
    return any(words == words_of(one) or words in said_for(one) for one in listed)
