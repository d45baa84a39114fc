"""Say a recording to the server and save what it answers:  python samples/speak.py question.wav answer.wav

The recording is a 16-bit mono WAV file of 24 kHz. Needs `pip install "openai[realtime]"`; the server's own environment
has it: .venv/bin/python. The server's address is CHORALE_URL, by default http://127.0.0.1:8080.
"""

import asyncio
import base64
import os
import sys
import wave

from openai import AsyncOpenAI

URL = os.environ.get("CHORALE_URL", "http://127.0.0.1:8080")
RATE_HZ = 24_000
CHUNK_BYTES = RATE_HZ * 2 // 10  # 100 ms


def read(path: str) -> bytes:
    try:
        with wave.open(path, "rb") as file:
            if (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE_HZ, 1, 2):
                return file.readframes(file.getnframes())
    except FileNotFoundError as error:
        sys.exit(str(error))
    except (EOFError, wave.Error):
        pass
    sys.exit(f"{path} is not 16-bit mono WAV at 24 kHz; try: ffmpeg -i {path} -ac 1 -ar 24000 at-24-khz.wav")


def write(path: str, sound: bytes) -> None:
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(sound)


async def speak(question: str, answer: str) -> None:
    sound, reply = read(question), bytearray()
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=os.environ.get("CHORALE_API_KEY", "none"))
    async with client.realtime.connect(model="chorale") as connection:
        await connection.session.update(
            session={
                "type": "realtime",
                # The whole recording is one turn: we say where it ends.
                "audio": {"input": {"turn_detection": None, "transcription": {"model": "whisper-1"}}},
            }
        )
        for start in range(0, len(sound), CHUNK_BYTES):
            chunk = sound[start : start + CHUNK_BYTES]
            await connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())
        await connection.input_audio_buffer.commit()
        await connection.response.create()
        async for event in connection:
            match event.type:
                case "conversation.item.input_audio_transcription.completed":
                    print("you:  ", event.transcript)
                case "response.output_audio.delta":
                    reply += base64.b64decode(event.delta)
                case "response.output_audio_transcript.done":
                    print("reply:", event.transcript)
                case "response.done":
                    write(answer, bytes(reply))
                    if event.response.status != "completed":
                        sys.exit(f"the reply is {event.response.status}")
                    return
                case "error":
                    sys.exit(f"refused: {event.error.message}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        asyncio.run(speak(sys.argv[1], sys.argv[2]))
    except ConnectionError:
        sys.exit(f"no server answers at {URL}; start one with: make run")
