"""``GET /v1/models``: what there is to be asked."""

from typing import Literal

from fastapi import FastAPI
from pydantic import BaseModel

from orchestrator.transports.description import ADMITTED, errors
from orchestrator.transports.openai_door import OpenAi, router
from orchestrator.transports.refusals import Refusal
from orchestrator.transports.routes import Doors

WHOLE = "chorale"
"""The name of everything together; requests may name it, or any other, wherever a model is asked for."""


class Model(BaseModel):
    """One model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["chorale"] = "chorale"


class ModelList(BaseModel):
    """All of them."""

    object: Literal["list"] = "list"
    data: list[Model]


def register(app: FastAPI, doors: Doors) -> None:
    """Adds the routes of this file, where there is somebody to do the work."""
    openai = doors.openai
    if openai is None:
        return
    models = _models(openai)
    routes = router(doors.entrance, answers=errors(*ADMITTED, 404, 503))

    @routes.get("/v1/models", summary="Lists the models.")
    async def listed() -> ModelList:
        return ModelList(data=list(models.values()))

    @routes.get("/v1/models/{name:path}", summary="Tells about one model.")
    async def one(name: str) -> Model:
        if name not in models:
            raise Refusal(404, "model_not_found", "There is no model of this name here.", "model")
        return models[name]

    app.include_router(routes)


def _models(openai: OpenAi) -> dict[str, Model]:
    names = (WHOLE, *openai.models.values())
    return {name: Model(id=name, created=openai.created_s) for name in dict.fromkeys(names)}
